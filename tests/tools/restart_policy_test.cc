#include "tools/launch/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zg::launch {
namespace {

using ::testing::HasSubstr;

const AttemptEnd kFailed = {.code = 1, .was_stopped = false, .has_saved = false};
const AttemptEnd kFailedAfterSave = {.code = 137, .was_stopped = false, .has_saved = true};

TEST(RestartPolicy, SuccessIsTheEnd) {
  RestartPolicy policy(2, {});
  EXPECT_FALSE(policy.Next({}).has_value());
  EXPECT_EQ(policy.why(), "finished");
  // For example after SIGTERM, when the program has saved.
  EXPECT_FALSE(policy.Next({0, true, true}).has_value());
}

TEST(RestartPolicy, WhatTheUserStopsStaysStopped) {
  RestartPolicy policy(2, {});
  EXPECT_FALSE(policy.Next({1, true, true}).has_value());
  EXPECT_EQ(policy.why(), "stopped by a signal");
}

TEST(RestartPolicy, AWrongCommandLineIsNotTriedAgain) {
  RestartPolicy policy(2, {});
  EXPECT_FALSE(policy.Next({2, false, false}).has_value());
  EXPECT_THAT(policy.why(), HasSubstr("refuses its command line"));
}

TEST(RestartPolicy, RestartsAreCounted) {
  RestartPolicy policy(2, {.max_restarts = 2, .min_ranks = 2, .micro_batches = 2});
  EXPECT_EQ(policy.Next(kFailedAfterSave), 2);
  EXPECT_EQ(policy.why(), "restart 1 of 2");
  EXPECT_EQ(policy.Next(kFailedAfterSave), 2);
  EXPECT_FALSE(policy.Next(kFailedAfterSave).has_value());
  EXPECT_EQ(policy.why(), "2 restarts are used up");
  EXPECT_EQ(policy.num_restarts(), 2);
  RestartPolicy never(2, {.max_restarts = 0, .min_ranks = 2, .micro_batches = 2});
  EXPECT_FALSE(never.Next(kFailed).has_value());
  EXPECT_THAT(never.why(), HasSubstr("--max-restarts 0"));
}

TEST(RestartPolicy, ARestartWithoutANewCheckpointCostsARank) {
  RestartPolicy policy(6, {.max_restarts = 9, .min_ranks = 2, .micro_batches = 12});
  EXPECT_EQ(policy.Next(kFailed), 6);  // the first failure may have any cause
  EXPECT_EQ(policy.Next(kFailed), 4);  // 5 does not divide 12
  EXPECT_THAT(policy.why(), HasSubstr("with 4 instead of 6 ranks"));
  EXPECT_EQ(policy.Next(kFailedAfterSave), 4);
  EXPECT_EQ(policy.Next(kFailed), 3);
  EXPECT_EQ(policy.Next(kFailed), 2);
  EXPECT_EQ(policy.Next(kFailed), 2);  // no fewer than min_ranks
}

}  // namespace
}  // namespace zg::launch
