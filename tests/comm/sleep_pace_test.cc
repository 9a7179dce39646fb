#include "framework/comm/sleep_pace.h"

#include <gtest/gtest.h>

namespace zg {
namespace {

// The sleep that the pace comes to in many waits that each take so many sleeps.
double SleepAfterWaitsOf(int num_sleeps, SleepPace* pace) {
  for (int wait = 0; wait < 100; ++wait) {
    for (int sleep = 0; sleep < num_sleeps; ++sleep) pace->SleepSeconds(sleep);
    pace->EndWait(num_sleeps);
  }
  return pace->SleepSeconds(0);
}

TEST(SleepPace, FollowsTheLink) {
  SleepPace pace;
  EXPECT_EQ(SleepAfterWaitsOf(0, &pace), SleepPace::kMinSeconds);   // always too late
  EXPECT_EQ(SleepAfterWaitsOf(2, &pace), SleepPace::kMinSeconds);   // as fast as the link
  EXPECT_EQ(SleepAfterWaitsOf(10, &pace), SleepPace::kMaxSeconds);  // much too fast
  EXPECT_EQ(SleepAfterWaitsOf(1, &pace), SleepPace::kMaxSeconds);
}

TEST(SleepPace, OneLongWaitMakesItSlowAndAFewShortOnesFastAgain) {
  SleepPace pace;
  SleepAfterWaitsOf(0, &pace);
  double slept_s = 0;
  int num_sleeps = 0;
  while (slept_s < 0.01) slept_s += pace.SleepSeconds(num_sleeps++);
  pace.EndWait(num_sleeps);
  EXPECT_EQ(pace.SleepSeconds(0), SleepPace::kMaxSeconds);
  EXPECT_LT(num_sleeps, 25);
  for (int wait = 0; wait < 4; ++wait) pace.EndWait(0);
  EXPECT_EQ(pace.SleepSeconds(0), SleepPace::kMinSeconds);
}

}  // namespace
}  // namespace zg
