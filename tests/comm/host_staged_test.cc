#include "framework/comm/host_staged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "framework/comm/in_process.h"
#include "tests/comm/communicator_suite.h"
#include "tests/testing/fake_device.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

// Uses the host as the device: the suite accesses the arena directly.
TransportUnderTest StagedRanks(int num_ranks) {
  return {fmt::format("Ranks{}", num_ranks), num_ranks,
          [num_ranks](double timeout_s, const RankMain& rank_main) {
            return RunRanks(num_ranks, timeout_s, [&](Communicator& host) -> Status {
              ZG_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> staged,
                                  MakeHostStagedCommunicator(&CpuDevice(), &host));
              return rank_main(*staged);
            });
          },
          /*counts_memory_of_host=*/false};
}

INSTANTIATE_TEST_SUITE_P(HostStaged, CommunicatorSuite,
                         ::testing::Values(StagedRanks(1), StagedRanks(2), StagedRanks(3),
                                           StagedRanks(4)),
                         TransportName);

// Larger than a stage, so that every collective runs in pieces; only copies access the device's
// memory.
TEST(HostStagedTest, LargeOperandsGoInPieces) {
  constexpr int kRanks = 3;
  constexpr int64_t kPart = 5'000'001;
  const Status status = RunRanks(kRanks, [&](Communicator& host) -> Status {
    zg::testing::FakeDevice device;
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> staged,
                        MakeHostStagedCommunicator(&device, &host));
    const int64_t part_bytes = kPart * 4;
    ZG_ASSIGN_OR_RETURN(std::byte* const arena,
                        staged->arena().Allocate((kRanks + 1) * part_bytes, 0));
    std::vector<float> input(kRanks * kPart);
    for (size_t i = 0; i < input.size(); ++i) {
      input[i] = static_cast<float>(i % 1000) * static_cast<float>(host.rank() + 1);
    }
    ZG_RETURN_IF_ERROR(device.Write(arena, input.data(), kRanks * part_bytes));
    const ArenaOperand sums = {kRanks * part_bytes, 0};
    ZG_RETURN_IF_ERROR(
        staged->world().ReduceScatter("sum", {0, 0}, sums, kRanks * kPart, DType::kF32, false));
    ZG_RETURN_IF_ERROR(staged->world().AllGather("sum", sums, {0, 0}, part_bytes));
    std::vector<std::byte> scratch;
    ZG_ASSIGN_OR_RETURN(const std::byte* const bytes,
                        device.Read(arena, kRanks * part_bytes, &scratch));
    std::vector<float> output(input.size());
    std::memcpy(output.data(), bytes, scratch.size());
    for (size_t i = 0; i < output.size(); ++i) {
      const float expected = static_cast<float>(i % 1000) * 6;  // (1 + 2 + 3)
      if (output[i] != expected) {
        return InvalidArgument("element {} is {}, expected {}", i, output[i], expected);
      }
    }
    EXPECT_EQ(staged->traffic()[static_cast<int>(CollectiveKind::kAllGather)].count, 1);
    EXPECT_EQ(staged->traffic()[static_cast<int>(CollectiveKind::kAllGather)].bytes,
              2 * part_bytes);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(HostStagedTest, OneRankWithoutMemoryOnItsDeviceIsAnErrorOnAll) {
  class FullDevice : public zg::testing::FakeDevice {
   public:
    StatusOr<DeviceBytes> Allocate(int64_t) override { return FailedPrecondition("it is full"); }
  };
  const Status status = RunRanks(2, [&](Communicator& host) -> Status {
    zg::testing::FakeDevice empty;
    FullDevice full;
    Device* const device = host.rank() == 1 ? static_cast<Device*>(&full) : &empty;
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> staged,
                        MakeHostStagedCommunicator(device, &host));
    const Status allocated = staged->arena().Allocate(100, 0).status();
    EXPECT_THAT(allocated.message(), HasSubstr("it is full"));
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace zg
