#include "framework/comm/host_staged.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/collective_call.h"

namespace zg {
namespace {

// Size of the stage for inputs, and of the stage for outputs.
constexpr int64_t kStageBytes = int64_t{16} << 20;

constexpr int64_t kMaxElementBytes = 8;

// The stages' offsets in the host's arena.
constexpr ArenaOperand kInputStage = {0, 0};
constexpr ArenaOperand kOutputStage = {kStageBytes, 0};

// This rank's memory on its device, and pinned stages in the host's arena.
class HostStagedArena : public Arena {
 public:
  HostStagedArena(Device* device, Communicator* host) : device_(*device), host_(*host) {}

  Status Prepare() {
    const int64_t stages_bytes = 2 * kStageBytes;
    const int64_t bytes = stages_bytes + host_.arena().workspace_bytes();
    ZG_ASSIGN_OR_RETURN(std::byte* const stages, host_.arena().Allocate(bytes, stages_bytes));
    StatusOr<DeviceBytes> pinned = device_.Pin(stages, stages_bytes);
    ZG_RETURN_IF_ERROR(ExchangeStatus(host_, "pin memory", pinned.status()));
    stages_ = std::move(*pinned);
    return Status::Ok();
  }

  Device& device() const override { return device_; }
  int64_t workspace_bytes() const override { return 0; }

  StatusOr<std::byte*> Allocate(int64_t bytes, int64_t /*workspace_offset*/) override {
    ZG_RETURN_IF_ERROR(host_.Barrier(fmt::format("allocate_arena of {} bytes", bytes)));
    ClearBlock();
    memory_ = nullptr;
    StatusOr<DeviceBytes> memory = device_.Allocate(bytes);
    ZG_RETURN_IF_ERROR(ExchangeStatus(host_, "allocate arena", memory.status()));
    memory_ = std::move(*memory);
    SetBlock(memory_.get(), bytes, 0);
    return memory_.get();
  }

  int64_t peer_resident_bytes() const override { return host_.arena().peer_resident_bytes(); }

  std::byte* stages() const { return stages_.get(); }

 private:
  Device& device_;
  Communicator& host_;
  DeviceBytes stages_;
  DeviceBytes memory_;
};

class HostStagedGroup : public Group {
 public:
  // `host` has the same ranks in the same order. `host_traffic` counts their transfers.
  HostStagedGroup(Group* host, int job_rank, const HostStagedArena* arena,
                  const TrafficMeter* host_traffic, TrafficMeter* traffic)
      : Group(host->ranks(), job_rank, traffic),
        host_(*host),
        arena_(*arena),
        device_(arena->device()),
        host_traffic_(*host_traffic) {}

  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) override {
    ZG_RETURN_IF_ERROR(Start(CollectiveKind::kReduceScatter,
                             {"reduce_scatter", name, elements, input, output, types, accumulate}));
    const int64_t part = elements / size();
    return InPieces(part, size() * kMaxElementBytes, [&](int64_t begin, int64_t count) -> Status {
      const int64_t term_bytes = SizeOf(types.terms);
      const Range sums = {begin * SizeOf(types.sum), count * SizeOf(types.sum)};
      ZG_RETURN_IF_ERROR(
          FetchParts(input, part * term_bytes, {begin * term_bytes, count * term_bytes}));
      if (accumulate) ZG_RETURN_IF_ERROR(Fetch(output, sums, kOutputStage));
      ZG_RETURN_IF_ERROR(device_.Synchronize());
      ZG_RETURN_IF_ERROR(
          host_.ReduceScatter(name, kInputStage, kOutputStage, count * size(), types, accumulate));
      return Store(sums, output);
    });
  }

  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) override {
    ZG_RETURN_IF_ERROR(
        Start(CollectiveKind::kAllGather, {"all_gather", name, part_bytes, input, output}));
    return InPieces(part_bytes, size(), [&](int64_t begin, int64_t bytes) -> Status {
      ZG_RETURN_IF_ERROR(Fetch(input, {begin, bytes}, kInputStage));
      ZG_RETURN_IF_ERROR(device_.Synchronize());
      ZG_RETURN_IF_ERROR(host_.AllGather(name, kInputStage, kOutputStage, bytes));
      return StoreParts({begin, bytes}, part_bytes, output);
    });
  }

  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) override {
    ZG_RETURN_IF_ERROR(Start(CollectiveKind::kAllReduce,
                             {"all_reduce", name, elements, input, output, types, accumulate}));
    return InPieces(elements, kMaxElementBytes, [&](int64_t begin, int64_t count) -> Status {
      const int64_t term_bytes = SizeOf(types.terms);
      const Range sums = {begin * SizeOf(types.sum), count * SizeOf(types.sum)};
      ZG_RETURN_IF_ERROR(Fetch(input, {begin * term_bytes, count * term_bytes}, kInputStage));
      if (accumulate) ZG_RETURN_IF_ERROR(Fetch(output, sums, kOutputStage));
      ZG_RETURN_IF_ERROR(device_.Synchronize());
      ZG_RETURN_IF_ERROR(
          host_.AllReduce(name, kInputStage, kOutputStage, count, types, accumulate));
      return Store(sums, output);
    });
  }

  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) override {
    ZG_RETURN_IF_ERROR(
        Start(CollectiveKind::kAllToAll, {"all_to_all", name, part_bytes, input, output}));
    return InPieces(part_bytes, size(), [&](int64_t begin, int64_t bytes) -> Status {
      ZG_RETURN_IF_ERROR(FetchParts(input, part_bytes, {begin, bytes}));
      ZG_RETURN_IF_ERROR(device_.Synchronize());
      ZG_RETURN_IF_ERROR(host_.AllToAll(name, kInputStage, kOutputStage, bytes));
      return StoreParts({begin, bytes}, part_bytes, output);
    });
  }

 private:
  struct Range {  // of an operand
    int64_t begin = 0;
    int64_t bytes = 0;
  };

  Status Start(CollectiveKind kind, const CollectiveCall& call) {
    ZG_RETURN_IF_ERROR(CheckOperands(kind, call, *this, arena_));
    traffic().BeginCall(kind);
    return Status::Ok();
  }

  // Calls `piece(begin, count)` for pieces of [0, total) that fit into a stage with `bytes_each`
  // bytes for each unit. It calls once for an empty range, so that the ranks compare their calls
  // even then.
  template <typename Piece>
  Status InPieces(int64_t total, int64_t bytes_each, const Piece& piece) {
    const int64_t received_before = ReceivedByHost();
    const int64_t max_count = kStageBytes / bytes_each / 64 * 64;
    int64_t begin = 0;
    do {
      const int64_t count = std::min(max_count, total - begin);
      ZG_RETURN_IF_ERROR(piece(begin, count));
      begin += count;
    } while (begin < total);
    traffic().AddReceived(ReceivedByHost() - received_before);
    return Status::Ok();
  }

  int64_t ReceivedByHost() const {
    int64_t bytes = 0;
    for (const Traffic& traffic : host_traffic_.counters()) bytes += traffic.bytes;
    return bytes;
  }

  std::byte* InArena(ArenaOperand operand, int64_t offset) const {
    return arena_.data() + operand.OffsetOn(rank()) + offset;
  }
  std::byte* InStage(ArenaOperand stage, int64_t offset = 0) const {
    return arena_.stages() + stage.offset + offset;
  }

  Status Fetch(ArenaOperand operand, Range range, ArenaOperand stage) {
    return device_.CopyOut(InStage(stage), InArena(operand, range.begin), range.bytes);
  }
  Status Store(Range range, ArenaOperand operand) {
    return device_.CopyIn(InArena(operand, range.begin), InStage(kOutputStage), range.bytes);
  }

  // Copies the same range of every rank's part of an operand, side by side, into the stage.
  Status FetchParts(ArenaOperand operand, int64_t part_bytes, Range range) {
    for (int part = 0; part < size(); ++part) {
      ZG_RETURN_IF_ERROR(device_.CopyOut(InStage(kInputStage, part * range.bytes),
                                         InArena(operand, part * part_bytes + range.begin),
                                         range.bytes));
    }
    return Status::Ok();
  }
  Status StoreParts(Range range, int64_t part_bytes, ArenaOperand operand) {
    for (int part = 0; part < size(); ++part) {
      ZG_RETURN_IF_ERROR(device_.CopyIn(InArena(operand, part * part_bytes + range.begin),
                                        InStage(kOutputStage, part * range.bytes), range.bytes));
    }
    return Status::Ok();
  }

  Group& host_;
  const HostStagedArena& arena_;
  Device& device_;
  const TrafficMeter& host_traffic_;
};

class HostStagedCommunicator : public Communicator {
 public:
  HostStagedCommunicator(Device* device, Communicator* host)
      : host_(*host),
        arena_(device, host),
        world_(&host->world(), host->rank(), &arena_, &host->traffic_meter(), &traffic_meter()) {}
  ~HostStagedCommunicator() override { ReleaseGroups(); }

  Status Prepare() { return arena_.Prepare(); }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::string_view transport() const override {
    return host_.transport() == "messages" ? "host memory, messages" : "host memory, shared memory";
  }
  std::vector<int> hosts() const override { return host_.hosts(); }
  StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> host, host_.Duplicate());
    auto duplicate = std::make_unique<HostStagedCommunicator>(&arena_.device(), host.get());
    duplicate->owned_host_ = std::move(host);
    ZG_RETURN_IF_ERROR(duplicate->Prepare());
    return std::unique_ptr<Communicator>(std::move(duplicate));
  }
  // The programs of a single rank have no collectives.
  bool queues_on_device() const override { return size() == 1; }
  Arena& arena() override { return arena_; }
  Group& world() override { return world_; }

  Status Barrier(std::string_view name) override { return host_.Barrier(name); }
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) override {
    return host_.Exchange(name, mine);
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) override {
    return host_.ExchangeWord(name, mine, all);
  }
  void Abort(const Status& status) override { host_.Abort(status); }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>& ranks) override {
    ZG_ASSIGN_OR_RETURN(Group* const host, host_.GroupOf(ranks));
    return std::unique_ptr<Group>(
        new HostStagedGroup(host, rank(), &arena_, &host_.traffic_meter(), &traffic_meter()));
  }

 private:
  std::unique_ptr<Communicator> owned_host_;  // of a duplicate
  Communicator& host_;
  HostStagedArena arena_;
  HostStagedGroup world_;
};

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeHostStagedCommunicator(Device* device,
                                                                   Communicator* host) {
  auto communicator = std::make_unique<HostStagedCommunicator>(device, host);
  ZG_RETURN_IF_ERROR(communicator->Prepare());
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace zg
