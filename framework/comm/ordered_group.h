// OrderedGroup: the collectives of ranks on devices, composed of messages on their queues. A sum
// over ranks is an all-to-all of the parts, chunk by chunk, each folded by its owner in the order
// of every transport (group.h). It needs room in the arena for a chunk of every peer.
//
// The derived classes implement the sending of messages and the fold on the device. Nothing here
// waits.
#pragma once

#include <string_view>
#include <vector>

#include "framework/comm/collective_call.h"
#include "framework/comm/communicator.h"
#include "framework/comm/fold_element.h"
#include "framework/device/device.h"

namespace zg {

// This rank's memory on its device, with room for a chunk of every other rank of the job.
class OrderedArena : public Arena {
 public:
  // Both must outlive this. `max_chunk_bytes` is per peer.
  OrderedArena(Device* device, ControlPlane* control, int64_t max_chunk_bytes);

  Device& device() const final { return device_; }
  int64_t workspace_bytes() const final { return (control_.size() - 1) * chunk_bytes_; }
  int64_t chunk_bytes() const { return chunk_bytes_; }
  StatusOr<std::byte*> Allocate(int64_t bytes, int64_t workspace_offset) final;

 private:
  Device& device_;
  ControlPlane& control_;
  const int64_t chunk_bytes_;
  DeviceBytes memory_;
};

class OrderedGroup : public Group {
 public:
  Status ReduceScatter(std::string_view name, ArenaOperand input, ArenaOperand output,
                       int64_t elements, ReductionTypes types, bool accumulate) final;
  Status AllGather(std::string_view name, ArenaOperand input, ArenaOperand output,
                   int64_t part_bytes) final;
  Status AllReduce(std::string_view name, ArenaOperand input, ArenaOperand output, int64_t elements,
                   ReductionTypes types, bool accumulate) final;
  Status AllToAll(std::string_view name, ArenaOperand input, ArenaOperand output,
                  int64_t part_bytes) final;

 protected:
  OrderedGroup(std::vector<int> ranks, int job_rank, const OrderedArena* arena,
               TrafficMeter* traffic)
      : Group(std::move(ranks), job_rank, traffic), arena_(*arena) {}

  struct Message {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    int peer = 0;  // in the group
  };
  // Queue operations: a batch of messages; the sum of a part; equal parts of all ranks side by
  // side.
  virtual Status SendAndReceive(const std::vector<Message>& sent,
                                const std::vector<Message>& received) = 0;
  virtual Status Fold(ReductionTypes types, const FoldInputs& inputs, int64_t elements,
                      std::byte* output) = 0;
  virtual Status GatherEqualParts(const std::byte* own, int64_t part_bytes, std::byte* output) = 0;

  // Whether to use the transport's own sums, in an order of its own: if they are requested and it
  // has them.
  virtual bool HasOwnSums(ReductionTypes /*types*/, bool /*accumulate*/) const { return false; }
  virtual Status OwnReduceScatter(const std::byte* input, std::byte* output, int64_t elements,
                                  DType dtype);
  virtual Status OwnAllReduce(const std::byte* input, std::byte* output, int64_t elements,
                              DType dtype);

  // All operations of the collective `name` are queued.
  virtual Status Queued(std::string_view operation, std::string_view name) = 0;

  Device& device() const { return arena_.device(); }

 private:
  Status Start(CollectiveKind kind, const CollectiveCall& call);
  Status Exchange();  // of sent_ and received_
  Status Gather(const std::byte* own, int64_t part_bytes, std::byte* output);
  Status FoldParts(std::byte* input, const Parts& parts, ReductionTypes types, bool accumulate,
                   std::byte* output);
  Status GatherParts(std::byte* own, const Parts& parts, std::byte* output);
  std::byte* At(ArenaOperand operand) const { return arena_.data() + operand.OffsetOn(rank()); }

  const OrderedArena& arena_;
  std::vector<Message> sent_;
  std::vector<Message> received_;
};

// The common part of communicators with such groups. Another communicator provides their control
// plane, and must outlive this.
class OrderedCommunicator : public Communicator {
 public:
  int rank() const final { return control_.rank(); }
  int size() const final { return control_.size(); }
  bool queues_on_device() const override { return true; }
  Arena& arena() final { return arena_; }

  Status Barrier(std::string_view name) final { return control_.Barrier(name); }
  StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                              const std::string& mine) final {
    return control_.Exchange(name, mine);
  }
  Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) final {
    return control_.ExchangeWord(name, mine, all);
  }
  void Abort(const Status& status) final { control_.Abort(status); }

 protected:
  OrderedCommunicator(Device* device, ControlPlane* control, int64_t max_chunk_bytes)
      : control_(*control), arena_(device, control, max_chunk_bytes) {}

  ControlPlane& control() const { return control_; }
  const OrderedArena& ordered_arena() const { return arena_; }

 private:
  ControlPlane& control_;
  OrderedArena arena_;
};

}  // namespace zg
