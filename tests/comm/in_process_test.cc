#include "framework/comm/in_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/comm/communicator_suite.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

TransportUnderTest InProcessRanks(int num_ranks) {
  return {fmt::format("Ranks{}", num_ranks), num_ranks,
          [num_ranks](double timeout_s, const RankMain& rank_main) {
            return RunRanks(num_ranks, timeout_s, rank_main);
          }};
}

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorSuite,
                         testing::Values(InProcessRanks(1), InProcessRanks(2), InProcessRanks(3),
                                         InProcessRanks(4), InProcessRanks(7)),
                         TransportName);

TEST(RunRanksTest, ReturnsTheErrorOfTheRankThatFailedFirst) {
  const auto start = std::chrono::steady_clock::now();
  const Status status = RunRanks(4, [](Communicator& communicator) -> Status {
    ZG_RETURN_IF_ERROR(communicator.Barrier("start"));
    if (communicator.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return DataLoss("shard 2 is corrupt");
    }
    const Status other = communicator.Barrier("never complete");
    EXPECT_EQ(other.code(), StatusCode::kAborted);
    EXPECT_EQ(other.message(), fmt::format("barrier 'never complete' (call 2) on rank {}: rank 2 "
                                           "failed: data loss: shard 2 is corrupt",
                                           communicator.rank()));
    return other;
  });
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "shard 2 is corrupt");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(RunRanksTest, AnErrorEndsRanksThatComeLater) {
  const Status status = RunRanks(3, [](Communicator& communicator) -> Status {
    if (communicator.rank() == 0) return NotFound("no data set");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return communicator.Barrier("start");
  });
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
}

TEST(RunRanksTest, RejectsABadTimeout) {
  setenv("ZG_COLLECTIVE_TIMEOUT_S", "soon", 1);
  const Status status = RunRanks(2, [](Communicator&) { return Status::Ok(); });
  unsetenv("ZG_COLLECTIVE_TIMEOUT_S");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("ZG_COLLECTIVE_TIMEOUT_S is 'soon'"));
}

TEST(RunRanksTest, RejectsNoRanks) {
  EXPECT_EQ(RunRanks(0, [](Communicator&) { return Status::Ok(); }).code(),
            StatusCode::kInvalidArgument);
}

// Far more threads than cores: must end in seconds, which requires waiting ranks to yield.
TEST(RunRanksTest, HundredsOfRanks) {
  const int num_ranks = 200;
  const Status status = RunRanks(num_ranks, [](Communicator& communicator) -> Status {
    const int64_t part = 64;
    const int64_t elements = part * communicator.size();
    ZG_ASSIGN_OR_RETURN(std::byte* const arena, communicator.arena().Allocate(elements * 4, 0));
    auto* const floats = reinterpret_cast<float*>(arena);
    for (int step = 0; step < 10; ++step) {
      for (int64_t i = 0; i < elements; ++i) floats[i] = static_cast<float>(communicator.rank());
      ZG_RETURN_IF_ERROR(communicator.world().ReduceScatter("gradients", {0, 0}, {0, part * 4},
                                                            elements, DType::kF32, false));
      ZG_RETURN_IF_ERROR(
          communicator.world().AllGather("parameters", {0, part * 4}, {0, 0}, part * 4));
      for (int64_t i = 0; i < elements; ++i) {
        if (floats[i] != 199 * 200 / 2) return InvalidArgument("element {}: {}", i, floats[i]);
      }
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
}

}  // namespace
}  // namespace zg
