#include "framework/comm/in_process.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "framework/base/check.h"
#include "framework/comm/available_memory.h"
#include "framework/comm/mapped_memory.h"
#include "framework/comm/peer_memory_communicator.h"

namespace zg {

// State shared by the ranks. A rank writes its own element before it reaches a barrier, and the
// others read it between that barrier and the next.
struct InProcessGroup::Shared {
  static StatusOr<std::shared_ptr<Shared>> Create(int num_ranks) {
    auto shared = std::make_shared<Shared>();
    ZG_ASSIGN_OR_RETURN(shared->control_block, shared->AddControlBlock(num_ranks));
    shared->arenas.resize(num_ranks);
    shared->exchanged.resize(num_ranks);
    return shared;
  }

  StatusOr<ControlBlock*> AddControlBlock(int num_ranks) {
    ZG_ASSIGN_OR_RETURN(MappedMemory memory,
                        MappedMemory::Private(ControlBlock::BytesFor(num_ranks)));
    const std::lock_guard<std::mutex> lock(mutex);
    control_memory.push_back(std::move(memory));
    return ControlBlock::Create(control_memory.back().data());
  }

  std::mutex mutex;
  std::vector<MappedMemory> control_memory;  // under the mutex
  ControlBlock* control_block = nullptr;     // of all ranks
  std::vector<MappedMemory> arenas;
  std::vector<std::string> exchanged;
};

class InProcessGroup::InProcessArena : public PeerArena {
 public:
  InProcessArena(Shared* shared, ControlPlane* control, Rendezvous* rendezvous)
      : shared_(*shared), control_(*control), rendezvous_(*rendezvous) {}

  StatusOr<std::byte*> Allocate(int64_t bytes, int64_t workspace_offset) override {
    ZG_RETURN_IF_ERROR(rendezvous_.Enter(
        {"allocate_arena", fmt::format("{} bytes", bytes), bytes, {workspace_offset, 0}, {}}));
    ClearBlocks();
    MappedMemory& own = shared_.arenas[control_.rank()];
    own = MappedMemory();
    // All ranks check before any allocates, so that all see the same memory.
    ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "check memory", CheckMemory(bytes)));

    StatusOr<MappedMemory> memory = MappedMemory::Private(bytes);
    if (memory.ok()) own = std::move(*memory);
    ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "map arena", memory.status()));
    std::vector<const std::byte*> blocks;
    for (const MappedMemory& arena : shared_.arenas) blocks.push_back(arena.data());
    SetBlocks(own.data(), std::move(blocks), bytes);
    return own.data();
  }

 private:
  Status CheckMemory(int64_t bytes) const {
    ZG_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
    return CheckMemoryFor(bytes, control_.size(), available);
  }

  Shared& shared_;
  ControlPlane& control_;
  Rendezvous& rendezvous_;
};

class InProcessGroup::InProcessCommunicator : public PeerMemoryCommunicator {
 public:
  // `job_block` is that of the job's first communicator.
  InProcessCommunicator(std::shared_ptr<Shared> shared, ControlBlock* job_block, int rank,
                        int num_ranks, double timeout_s)
      : PeerMemoryCommunicator(shared->control_block, job_block, rank, num_ranks, timeout_s,
                               &arena_),
        owned_(std::move(shared)),
        shared_(*owned_),
        arena_(&shared_, this, &rendezvous()) {}
  ~InProcessCommunicator() override { ReleaseGroups(); }

  Arena& arena() override { return arena_; }

  StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    std::shared_ptr<Shared> shared;
    Status status;
    if (rank() == 0) {
      StatusOr<std::shared_ptr<Shared>> made = Shared::Create(size());
      status = made.status();
      if (made.ok()) shared = *std::move(made);
    }
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "duplicate the communicator", status));
    std::shared_ptr<Shared>* const own = &shared;
    const std::string address(reinterpret_cast<const char*>(&own), sizeof(own));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                        Exchange("duplicate communicator", address));
    std::shared_ptr<Shared>* first = nullptr;
    std::memcpy(&first, addresses[0].data(), sizeof(first));
    if (rank() != 0) shared = *first;
    ZG_RETURN_IF_ERROR(rendezvous().MeetAgain());  // rank 0 holds it so long
    return std::unique_ptr<Communicator>(new InProcessCommunicator(
        std::move(shared), rendezvous().job_block(), rank(), size(), rendezvous().timeout_s()));
  }

  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    shared_.exchanged[rank()] = mine;
    ZG_RETURN_IF_ERROR(rendezvous().Enter({"exchange", name, 0, {}, {}}));
    std::vector<std::string> all = shared_.exchanged;
    ZG_RETURN_IF_ERROR(rendezvous().MeetAgain());
    return all;
  }

  void Abort(const Status& status) override { rendezvous().Fail(status); }

  int failed_rank() { return rendezvous().failed_rank(); }

 protected:
  StatusOr<ControlBlock*> MakeControlBlock(const std::vector<int>& ranks) override {
    ControlBlock* block = nullptr;
    Status status;
    if (rank() == ranks[0]) {
      StatusOr<ControlBlock*> made = shared_.AddControlBlock(static_cast<int>(ranks.size()));
      status = made.status();
      if (made.ok()) block = *made;
    }
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "allocate control block", status));
    const std::string address(reinterpret_cast<const char*>(&block), sizeof(block));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                        Exchange("control blocks of groups", address));
    std::memcpy(&block, addresses[ranks[0]].data(), sizeof(block));
    if (block == nullptr) return NoLeader(ranks);
    return block;
  }

 private:
  const std::shared_ptr<Shared> owned_;
  Shared& shared_;
  InProcessArena arena_;
};

InProcessGroup::InProcessGroup(int num_ranks, double timeout_s) {
  ZG_CHECK(num_ranks >= 1 && timeout_s > 0, "{} ranks, {} s", num_ranks, timeout_s);
  const StatusOr<std::shared_ptr<Shared>> shared = Shared::Create(num_ranks);
  ZG_CHECK(shared.ok(), "{}", shared.status().message());
  for (int rank = 0; rank < num_ranks; ++rank) {
    communicators_.push_back(std::make_unique<InProcessCommunicator>(
        *shared, (*shared)->control_block, rank, num_ranks, timeout_s));
  }
}

InProcessGroup::~InProcessGroup() = default;

int InProcessGroup::size() const { return static_cast<int>(communicators_.size()); }

Communicator& InProcessGroup::communicator(int rank) { return *communicators_.at(rank); }

int InProcessGroup::failed_rank() const { return communicators_[0]->failed_rank(); }

Status RunRanks(int num_ranks, const std::function<Status(Communicator&)>& rank_main) {
  ZG_ASSIGN_OR_RETURN(const double timeout_s, CollectiveTimeoutSeconds());
  return RunRanks(num_ranks, timeout_s, rank_main);
}

Status RunRanks(int num_ranks, double timeout_s,
                const std::function<Status(Communicator&)>& rank_main) {
  if (num_ranks < 1) return InvalidArgument("RunRanks: {} ranks; expected at least 1", num_ranks);
  // The ranks may log. spdlog makes its logger at the first use, under a lock of its library that
  // ThreadSanitizer does not see.
  spdlog::default_logger_raw();
  InProcessGroup group(num_ranks, timeout_s);
  std::vector<Status> statuses(num_ranks);
  std::vector<std::thread> threads;
  const auto run = [&](int rank) {
    Communicator& communicator = group.communicator(rank);
    statuses[rank] = rank_main(communicator);
    if (!statuses[rank].ok()) communicator.Abort(statuses[rank]);
  };
  for (int rank = 0; rank < num_ranks; ++rank) {
    try {
      threads.emplace_back(run, rank);
    } catch (const std::system_error& error) {
      statuses[rank] = FailedPrecondition("RunRanks: thread {} of {} cannot be started: {}", rank,
                                          num_ranks, error.what());
      group.communicator(rank).Abort(statuses[rank]);
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (const int first = group.failed_rank(); first >= 0 && !statuses[first].ok()) {
    return statuses[first];
  }
  for (const Status& status : statuses) ZG_RETURN_IF_ERROR(status);
  return Status::Ok();
}

}  // namespace zg
