#include "framework/comm/in_process.h"

#include <string>
#include <system_error>
#include <thread>

#include "framework/base/check.h"
#include "framework/comm/available_memory.h"
#include "framework/comm/mapped_memory.h"
#include "framework/comm/peer_memory_collectives.h"

namespace zg {

// What the ranks share. A rank writes its own element before it comes to a barrier, and the others
// read it between that barrier and the next.
struct InProcessGroup::Shared {
  explicit Shared(int num_ranks) : arenas(num_ranks), exchanged(num_ranks) {
    StatusOr<MappedMemory> memory = MappedMemory::Private(ControlBlock::BytesFor(num_ranks));
    ZG_CHECK(memory.ok(), "{}", memory.status().message());
    control_memory = std::move(*memory);
    control_block = ControlBlock::Create(control_memory.data());
  }

  MappedMemory control_memory;
  ControlBlock* control_block = nullptr;
  std::vector<MappedMemory> arenas;
  std::vector<std::string> exchanged;
};

class InProcessGroup::InProcessCommunicator : public PeerMemoryCollectives {
 public:
  InProcessCommunicator(Shared* shared, int rank, int num_ranks, double timeout_s)
      : PeerMemoryCollectives(shared->control_block, rank, num_ranks, timeout_s),
        shared_(*shared) {}

  StatusOr<std::byte*> AllocateArena(int64_t bytes, int64_t workspace_offset) override {
    ZG_RETURN_IF_ERROR(rendezvous_.Enter(
        {"allocate_arena", fmt::format("{} bytes", bytes), bytes, {workspace_offset, 0}, {}}));
    ClearArenas();
    MappedMemory& own = shared_.arenas[rank()];
    own = MappedMemory();
    // Checked by all before any allocates, so that all see the same.
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "check memory", CheckMemory(bytes)));

    StatusOr<MappedMemory> memory = MappedMemory::Private(bytes);
    if (memory.ok()) own = std::move(*memory);
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "map arena", memory.status()));
    std::vector<const std::byte*> arenas;
    for (const MappedMemory& arena : shared_.arenas) arenas.push_back(arena.data());
    SetArenas(own.data(), std::move(arenas), bytes);
    return own.data();
  }

  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    shared_.exchanged[rank()] = mine;
    ZG_RETURN_IF_ERROR(rendezvous_.Enter({"exchange", name, 0, {}, {}}));
    std::vector<std::string> all = shared_.exchanged;
    ZG_RETURN_IF_ERROR(rendezvous_.MeetAgain());
    return all;
  }

  void Abort(const Status& status) override { rendezvous_.Fail(status); }

  int failed_rank() const { return rendezvous_.failed_rank(); }

 private:
  Status CheckMemory(int64_t bytes) const {
    ZG_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
    return CheckMemoryFor(bytes, size(), available);
  }

  Shared& shared_;
};

InProcessGroup::InProcessGroup(int num_ranks, double timeout_s) {
  ZG_CHECK(num_ranks >= 1 && timeout_s > 0, "{} ranks, {} s", num_ranks, timeout_s);
  shared_ = std::make_unique<Shared>(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    communicators_.push_back(
        std::make_unique<InProcessCommunicator>(shared_.get(), rank, num_ranks, timeout_s));
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
