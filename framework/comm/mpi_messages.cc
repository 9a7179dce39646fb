#include "framework/comm/mpi_messages.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/available_memory.h"
#include "framework/comm/collective_call.h"
#include "framework/comm/mapped_memory.h"
#include "framework/comm/message_chunks.h"
#include "framework/comm/message_rounds.h"
#include "framework/comm/message_sum.h"

namespace zg {
namespace {

constexpr int kTagRecord = 1;
constexpr int kTagPart = 2;

// This rank's block.
class MpiMessageArena : public Arena {
 public:
  MpiMessageArena(ControlPlane* control, int num_local_ranks)
      : control_(*control), num_local_ranks_(num_local_ranks) {}

  ~MpiMessageArena() override {
    // MPI may still write to the buffers of abandoned messages.
    if (is_abandoned_) new MappedMemory(std::move(memory_));
  }

  int64_t workspace_bytes() const override { return MessageWorkspaceBytes(control_.size()); }

  StatusOr<std::byte*> Allocate(int64_t bytes, int64_t workspace_offset) override;

  // Must be called if messages from or to the arena did not complete.
  void Abandon() { is_abandoned_ = true; }

 private:
  ControlPlane& control_;
  const int num_local_ranks_;
  MappedMemory memory_;
  bool is_abandoned_ = false;
};

StatusOr<std::byte*> MpiMessageArena::Allocate(int64_t bytes, int64_t workspace_offset) {
  ZG_RETURN_IF_ERROR(control_.Barrier(
      fmt::format("allocate_arena of {} bytes, workspace at {}", bytes, workspace_offset)));
  memory_ = MappedMemory();
  ClearBlock();
  ZG_RETURN_IF_ERROR(control_.Barrier("arenas are unmapped"));
  const auto check = [&]() -> Status {
    const int64_t workspace_end = workspace_offset + workspace_bytes();
    if (workspace_offset < 0 || workspace_offset % 64 != 0 || workspace_end > bytes) {
      return InvalidArgument("the workspace [{}, {}) is not in the arena of {} bytes",
                             workspace_offset, workspace_end, bytes);
    }
    ZG_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
    return CheckMemoryFor(bytes, num_local_ranks_, available);
  };
  ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "check memory", check()));

  StatusOr<MappedMemory> memory = MappedMemory::Private(bytes);
  ZG_RETURN_IF_ERROR(ExchangeStatus(control_, "allocate arena", memory.status()));
  memory_ = std::move(*memory);
  SetBlock(memory_.data(), bytes, workspace_offset);
  return memory_.data();
}

std::vector<int> HostsOf(const std::vector<int>& ranks, const std::vector<int>& hosts_of_job) {
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(hosts_of_job[rank]);
  return hosts;
}

class MpiMessageGroup : public Group {
 public:
  // `comm` has the ranks in this order.
  MpiMessageGroup(MpiComm comm, std::vector<int> ranks, const std::vector<int>& hosts_of_job,
                  int job_rank, double timeout_s, MpiMessageArena* arena,
                  Communicator* communicator)
      : Group(std::move(ranks), job_rank, &communicator->traffic_meter()),
        comm_(std::move(comm)),
        timeout_s_(timeout_s),
        only_waits_(communicator->only_waits()),
        arena_(*arena),
        peer_records_(size()),
        sum_(comm_.get(), HostsOf(this->ranks(), hosts_of_job), fold_order(), rank(),
             &communicator->traffic_meter(),
             [this](MpiRequests& requests) { return Finish(requests, Pace()); }),
        gather_rounds_(GatherRounds(HostsOf(this->ranks(), hosts_of_job), rank())),
        all_to_all_round_(AllToAllRound(size(), rank())) {}

  MPI_Comm comm() const { return comm_.get(); }
  double timeout_s() const { return timeout_s_; }

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) override;
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) override;
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) override;
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) override;

  // Sends this rank's call to every peer and receives theirs.
  Status Enter(const CollectiveCall& call, SleepPace* pace = nullptr);
  // The word of the call that a rank entered last.
  uint64_t WordOf(int of_rank) const {
    return of_rank == rank() ? call_.word : peer_records_[of_rank].word;
  }

 private:
  Status Start(CollectiveKind kind, const CollectiveCall& call);
  Status Finish(MpiRequests& requests, SleepPace* pace);
  // That of a collective which may run beside a computation.
  SleepPace* Pace() { return only_waits_ ? nullptr : &pace_; }

  // Sends parts of `input` and receives parts of `output`.
  Status Exchange(const MessageRound& round, const Parts& parts, const std::byte* input,
                  std::byte* output);

  Status Sum(const MessageSum::Operands& operands) {
    return sum_.Run(operands, arena_.data() + arena_.workspace_offset(), arena_.workspace_bytes());
  }
  Status GatherParts(const std::byte* own, const Parts& parts, std::byte* output);

  std::byte* At(ArenaOperand operand) const { return arena_.data() + operand.OffsetOn(rank()); }

  const MpiComm comm_;
  const double timeout_s_;
  const std::atomic<bool>& only_waits_;
  MpiMessageArena& arena_;
  CallRecord call_;  // the one entered last
  std::vector<CallRecord> peer_records_;
  MessageSum sum_;
  const std::vector<MessageRound> gather_rounds_;
  const MessageRound all_to_all_round_;
  SleepPace pace_;
};

Status MpiMessageGroup::Start(CollectiveKind kind, const CollectiveCall& call) {
  ZG_RETURN_IF_ERROR(CheckOperands(kind, call, *this, arena_));
  traffic().BeginCall(kind);
  return Enter(call, Pace());
}

Status MpiMessageGroup::Enter(const CollectiveCall& call, SleepPace* pace) {
  call_ = MakeCallRecord(call, call_.sequence + 1);
  MpiRequests requests;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    ZG_RETURN_IF_ERROR(
        requests.Receive(comm_.get(), &peer_records_[peer], sizeof(CallRecord), peer, kTagRecord));
    ZG_RETURN_IF_ERROR(requests.Send(comm_.get(), &call_, sizeof(CallRecord), peer, kTagRecord));
  }
  ZG_RETURN_IF_ERROR(Finish(requests, pace));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || peer_records_[peer].hash == call_.hash) continue;
    return CallMismatch(ranks()[rank()], call_, ranks()[peer], peer_records_[peer]);
  }
  return Status::Ok();
}

Status MpiMessageGroup::Finish(MpiRequests& requests, SleepPace* pace) {
  const Status status = requests.Wait(ranks(), timeout_s_, pace);
  if (status.ok()) return status;
  arena_.Abandon();
  return status.WithContext(fmt::format("{} on rank {}", Describe(call_), ranks()[rank()]));
}

// Parts go in chunks, of which few are under way: neither MPI nor the system has to buffer much, and
// what has to be answered finds no long queue.
Status MpiMessageGroup::Exchange(const MessageRound& round, const Parts& parts,
                                 const std::byte* input, std::byte* output) {
  const int64_t chunk_bytes = MessageChunkBytes(2);
  const int64_t num_steps = (parts.part + chunk_bytes - 1) / chunk_bytes;
  std::array<MpiRequests, kMessageDepth> under_way;
  const auto post = [&](int64_t step) -> Status {
    MpiRequests& requests = under_way[MessageSlot(step)];
    const int64_t begin = step * chunk_bytes;
    const auto count = [&](int part) { return std::min(chunk_bytes, parts.count(part) - begin); };
    for (const auto& [peer, part] : round.received) {
      if (count(part) <= 0) continue;
      std::byte* const chunk = output + parts.begin(part) + begin;
      ZG_RETURN_IF_ERROR(requests.Receive(comm_.get(), chunk, count(part), peer, kTagPart));
      traffic().AddReceived(count(part));
    }
    for (const auto& [peer, part] : round.sent) {
      if (count(part) <= 0) continue;
      const std::byte* const chunk = input + parts.begin(part) + begin;
      ZG_RETURN_IF_ERROR(requests.Send(comm_.get(), chunk, count(part), peer, kTagPart));
    }
    return Status::Ok();
  };
  return RunChunks(num_steps, post,
                   [&](int64_t step) { return Finish(under_way[MessageSlot(step)], Pace()); });
}

// `own` goes to every rank, and into its place in `output`.
Status MpiMessageGroup::GatherParts(const std::byte* own, const Parts& parts, std::byte* output) {
  std::byte* const place = output + parts.begin(rank());
  if (own != place) std::memcpy(place, own, parts.count(rank()));
  for (const MessageRound& round : gather_rounds_) {
    ZG_RETURN_IF_ERROR(Exchange(round, parts, output, output));
  }
  return Status::Ok();
}

Status MpiMessageGroup::ReduceScatter(std::string_view name, ArenaOperand input,
                                      ArenaOperand output, int64_t elements, ReductionTypes types,
                                      bool accumulate) {
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kReduceScatter,
                           {"reduce_scatter", name, elements, input, output, types, accumulate}));
  return Sum({At(input), At(output), {elements, elements / size()}, types, accumulate});
}

Status MpiMessageGroup::AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                                  int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllGather, {"all_gather", name, part_bytes, input, output}));
  return GatherParts(At(input), {part_bytes * size(), part_bytes}, At(output));
}

Status MpiMessageGroup::AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output,
                                  int64_t elements, ReductionTypes types, bool accumulate) {
  ZG_RETURN_IF_ERROR(Start(CollectiveKind::kAllReduce,
                           {"all_reduce", name, elements, input, output, types, accumulate}));
  const int64_t part = (elements + size() - 1) / size();
  const Parts sums{elements * SizeOf(types.sum), part * SizeOf(types.sum)};
  std::byte* const own_part = At(output) + sums.begin(rank());
  ZG_RETURN_IF_ERROR(Sum({At(input), own_part, {elements, part}, types, accumulate}));
  return GatherParts(own_part, sums, At(output));
}

Status MpiMessageGroup::AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                                 int64_t part_bytes) {
  ZG_RETURN_IF_ERROR(
      Start(CollectiveKind::kAllToAll, {"all_to_all", name, part_bytes, input, output}));
  std::memcpy(At(output) + rank() * part_bytes, At(input) + rank() * part_bytes, part_bytes);
  return Exchange(all_to_all_round_, {part_bytes * size(), part_bytes}, At(input), At(output));
}

class MpiMessageCommunicator : public Communicator {
 public:
  MpiMessageCommunicator(MpiComm comm, std::vector<int> hosts, double timeout_s)
      : rank_(comm.rank()),
        size_(comm.size()),
        hosts_(std::move(hosts)),
        arena_(this, static_cast<int>(std::count(hosts_.begin(), hosts_.end(), hosts_[rank_]))),
        world_(std::move(comm), AllRanks(size_), hosts_, rank_, timeout_s, &arena_, this) {}
  ~MpiMessageCommunicator() override { ReleaseGroups(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string_view transport() const override { return "messages"; }
  std::vector<int> hosts() const override { return hosts_; }
  bool can_have_threads() const override {
    int level = 0;
    return MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE;
  }
  Arena& arena() override { return arena_; }
  Group& world() override { return world_; }

  StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    ZG_RETURN_IF_ERROR(Barrier("duplicate the communicator"));
    ZG_ASSIGN_OR_RETURN(MpiComm comm, MpiComm::Duplicate(world_.comm()));
    return MakeMpiMessageCommunicator(std::move(comm), hosts_, world_.timeout_s());
  }

  Status Barrier(std::string_view name) override {
    return world_.Enter({"barrier", name, 0, {}, {}});
  }
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    ZG_RETURN_IF_ERROR(world_.Enter({"exchange", name, 0, {}, {}}));
    return GatherStrings(world_.comm(), mine, name, world_.timeout_s());
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    CollectiveCall call = {"exchange_word", name, 0, {}, {}};
    call.word = mine;
    ZG_RETURN_IF_ERROR(world_.Enter(call));
    for (int rank = 0; rank < size_; ++rank) all[rank] = world_.WordOf(rank);
    return Status::Ok();
  }
  void Abort(const Status& status) override { PrintAndAbort(status, rank_, /*was_first=*/true); }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_RETURN_IF_ERROR(Barrier("make groups"));
    const auto key = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    ZG_ASSIGN_OR_RETURN(MpiComm comm,
                        MpiComm::Split(world_.comm(), *std::min_element(ranks.begin(), ranks.end()),
                                       static_cast<int>(key)));
    ZG_RETURN_IF_ERROR(ExchangeStatus(*this, "make groups", CheckSize(comm, ranks)));
    return std::unique_ptr<Group>(new MpiMessageGroup(std::move(comm), ranks, hosts_, rank_,
                                                      world_.timeout_s(), &arena_, this));
  }

 private:
  Status CheckSize(const MpiComm& comm, const std::vector<int>& ranks) const {
    if (comm.size() == static_cast<int>(ranks.size())) return Status::Ok();
    return InvalidArgument(
        "rank {} asks for a group of {} ranks, of which {} ask for it; every rank must ask for the "
        "same groups",
        rank_, ranks.size(), comm.size());
  }

  const int rank_;
  const int size_;
  const std::vector<int> hosts_;  // by rank
  MpiMessageArena arena_;
  MpiMessageGroup world_;
};

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeMpiMessageCommunicator(MpiComm comm,
                                                                   std::vector<int> hosts,
                                                                   double timeout_s) {
  return std::unique_ptr<Communicator>(
      new MpiMessageCommunicator(std::move(comm), std::move(hosts), timeout_s));
}

}  // namespace zg
