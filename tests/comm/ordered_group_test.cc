// Compares collectives made of messages and folds with those of in-process ranks, on the same data.
// The messages here are strings of the control plane; on GPUs they are NCCL's.
#include "framework/comm/ordered_group.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"

namespace zg {
namespace {

constexpr int64_t kChunkBytes = 512;  // parts have several chunks, the last of which is incomplete

class GroupOfStrings : public OrderedGroup {
 public:
  GroupOfStrings(ControlPlane* control, const OrderedArena* arena, TrafficMeter* traffic)
      : OrderedGroup(AllRanks(control->size()), control->rank(), arena, traffic),
        control_(*control) {}

 protected:
  Status SendAndReceive(const std::vector<Message>& sent,
                        const std::vector<Message>& received) override {
    std::string mine;  // of each message: receiver, bytes, data
    for (const Message& message : sent) {
      const int64_t header[] = {message.peer, message.bytes};
      mine.append(reinterpret_cast<const char*>(header), sizeof(header));
      mine.append(reinterpret_cast<const char*>(message.data), message.bytes);
    }
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all, control_.Exchange("messages", mine));
    for (const Message& message : received) {
      const std::string& from = all[message.peer];
      size_t next = 0;
      int64_t header[2] = {-1, 0};
      while (header[0] != rank() && next < from.size()) {
        next += header[1];
        std::memcpy(header, from.data() + next, sizeof(header));
        next += sizeof(header);
      }
      if (header[0] != rank() || header[1] != message.bytes) {
        return InvalidArgument("rank {} sends {} bytes, expected {}", message.peer, header[1],
                               message.bytes);
      }
      std::memcpy(message.data, from.data() + next, message.bytes);
    }
    return Status::Ok();
  }

  Status Fold(ReductionTypes types, const FoldInputs& inputs, int64_t elements,
              std::byte* output) override {
    WithFoldTypes(types.terms, types.sum, [&](auto term, auto sum) {
      for (int64_t i = 0; i < elements; ++i) {
        FoldElement<decltype(term)>(inputs, i, reinterpret_cast<decltype(sum)*>(output));
      }
    });
    return Status::Ok();
  }

  Status GatherEqualParts(const std::byte* own, int64_t part_bytes, std::byte* output) override {
    const std::string mine(reinterpret_cast<const char*>(own), part_bytes);
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all, control_.Exchange("parts", mine));
    for (int peer = 0; peer < size(); ++peer) {
      std::memcpy(output + peer * part_bytes, all[peer].data(), part_bytes);
    }
    return Status::Ok();
  }

  Status Queued(std::string_view, std::string_view) override { return Status::Ok(); }

 private:
  ControlPlane& control_;
};

class MessagesInStrings : public OrderedCommunicator {
 public:
  explicit MessagesInStrings(ControlPlane* control)
      : OrderedCommunicator(&CpuDevice(), control, kChunkBytes),
        world_(control, &ordered_arena(), &traffic_meter()) {}

  std::string_view transport() const override { return "strings"; }
  Group& world() override { return world_; }

 protected:
  StatusOr<std::unique_ptr<Group>> MakeGroup(const std::vector<int>&) override {
    return InvalidArgument("only all ranks together");
  }

 private:
  GroupOfStrings world_;
};

constexpr int64_t kBytes = 64 << 10;
constexpr ArenaOperand kInput = {0, 0};
constexpr ArenaOperand kOutput = {40 << 10, 0};

// Values of many magnitudes, whatever the dtype, whose sums are finite.
void FillArena(DType dtype, int rank, int64_t bytes, std::byte* arena) {
  uint32_t state = 12345u + 977u * static_cast<uint32_t>(rank);
  const auto random = [&] { return state = state * 1664525u + 1013904223u; };
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof(T)); ++i) {
      const float sign = (random() >> 31) == 0 ? 1.0f : -1.0f;
      const float value = sign * static_cast<float>(random() >> 8) / (1 << (random() >> 27) % 24);
      reinterpret_cast<T*>(arena)[i] = FromF32<T>(dtype == DType::kF16 ? value / 65536 : value);
    }
  };
  if (dtype == DType::kI64) {
    // Small enough for their sums.
    for (int64_t i = 0; i < bytes / 8; ++i) {
      reinterpret_cast<int64_t*>(arena)[i] = (int64_t{random()} << 24) - (int64_t{1} << 55);
    }
  } else {
    WithFloatType(dtype, fill);
  }
}

using Call = std::function<Status(Communicator&)>;

// The arenas of both are equal to the last byte of the operands after the call.
Status Compare(Communicator& host, DType dtype, const Call& call) {
  MessagesInStrings ordered(&host);
  const int64_t bytes = kBytes + ordered.arena().workspace_bytes();
  ZG_ASSIGN_OR_RETURN(std::byte* const expected, host.arena().Allocate(bytes, kBytes));
  ZG_ASSIGN_OR_RETURN(std::byte* const got, ordered.arena().Allocate(bytes, kBytes));
  FillArena(dtype, host.rank(), kOutput.offset, expected);
  // The same on all ranks, like sums that calls continue.
  FillArena(dtype, /*rank=*/-1, kBytes - kOutput.offset, expected + kOutput.offset);
  std::memcpy(got, expected, kBytes);
  const TrafficCounters before = host.traffic();
  ZG_RETURN_IF_ERROR(call(host));
  ZG_RETURN_IF_ERROR(call(ordered));
  EXPECT_EQ(std::memcmp(expected, got, kBytes), 0);
  for (int i = 0; i < kNumCollectiveKinds && host.rank() == 0; ++i) {
    EXPECT_EQ(host.traffic()[i].bytes - before[i].bytes, ordered.traffic()[i].bytes);
    EXPECT_EQ(host.traffic()[i].count - before[i].count, ordered.traffic()[i].count);
  }
  return host.Barrier("compared");
}

void CompareOnRanks(DType dtype, const Call& call) {
  for (int ranks : {1, 2, 3, 5}) {
    SCOPED_TRACE(fmt::format("{} ranks of {}", ranks, DTypeName(dtype)));
    const Status status =
        RunRanks(ranks, [&](Communicator& host) { return Compare(host, dtype, call); });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

struct SumCase {
  ReductionTypes types;
  bool accumulate;
};
const SumCase kSums[] = {{DType::kF32, false},
                         {DType::kF32, true},
                         {DType::kI64, false},
                         {DType::kI64, true},
                         {DType::kBF16, false},
                         {DType::kF16, false},
                         {{DType::kBF16, DType::kF32}, false},
                         {{DType::kF16, DType::kF32}, false}};

TEST(OrderedGroupTest, ReduceScatter) {
  for (const SumCase& sum : kSums) {
    for (int64_t part : {0, 1, 128, 300, 700}) {
      CompareOnRanks(sum.types.terms, [&](Communicator& communicator) {
        return communicator.world().ReduceScatter(
            "test", kInput, kOutput, part * communicator.size(), sum.types, sum.accumulate);
      });
    }
  }
}

TEST(OrderedGroupTest, ReduceScatterInPlace) {
  CompareOnRanks(DType::kF32, [](Communicator& communicator) {
    return communicator.world().ReduceScatter("test", kInput, {0, 300 * 4},
                                              300 * communicator.size(), DType::kF32, false);
  });
}

TEST(OrderedGroupTest, AllReduce) {
  for (const SumCase& sum : kSums) {
    for (int64_t elements : {0, 1, 4, 128, 1001, 2000}) {
      CompareOnRanks(sum.types.terms, [&](Communicator& communicator) {
        return communicator.world().AllReduce("test", kInput, kOutput, elements, sum.types,
                                              sum.accumulate);
      });
    }
  }
}

TEST(OrderedGroupTest, AllReduceInPlace) {
  for (int64_t elements : {4, 1001}) {
    CompareOnRanks(DType::kF32, [&](Communicator& communicator) {
      return communicator.world().AllReduce("test", kInput, kInput, elements, DType::kF32, false);
    });
  }
}

TEST(OrderedGroupTest, AllGatherAndAllToAll) {
  for (int64_t part_bytes : {0, 1, 700, 4000}) {
    CompareOnRanks(DType::kF32, [&](Communicator& communicator) {
      return communicator.world().AllGather("test", kInput, kOutput, part_bytes);
    });
    CompareOnRanks(DType::kF32, [&](Communicator& communicator) {
      return communicator.world().AllGather("test", {0, part_bytes}, kInput, part_bytes);
    });
    CompareOnRanks(DType::kF32, [&](Communicator& communicator) {
      return communicator.world().AllToAll("test", kInput, kOutput, part_bytes);
    });
  }
}

}  // namespace
}  // namespace zg
