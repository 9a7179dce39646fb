#include "framework/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace zg::optim {
namespace {

using Decay = Schedule::Decay;

TEST(Schedule, WarmUpIsALineFromZeroToOne) {
  for (const Decay decay : {Decay::kConstant, Decay::kLinear, Decay::kCosine}) {
    const Schedule schedule = {decay, 10, 100, 0.1};
    for (int64_t step = 1; step <= 10; ++step) {
      EXPECT_EQ(schedule.factor(step), static_cast<double>(step) / 10);
    }
    EXPECT_EQ((Schedule{decay, 0, 100, 0.1}.factor(0)), 1.0);
    EXPECT_EQ((Schedule{decay, 200, 100, 0.1}.factor(100)), 0.5);
  }
}

TEST(Schedule, ConstantStays) {
  const Schedule schedule = {Decay::kConstant, 3, 100, 0.1};
  for (const int64_t step : {3, 50, 100, 1000}) EXPECT_EQ(schedule.factor(step), 1.0);
}

TEST(Schedule, LinearFallsByEqualSteps) {
  const Schedule schedule = {Decay::kLinear, 20, 100, 0.2};
  for (int64_t step = 20; step <= 100; ++step) {
    const double expected = 1.0 - 0.8 * static_cast<double>(step - 20) / 80;
    EXPECT_NEAR(schedule.factor(step), expected, 1e-15);
  }
  EXPECT_EQ(schedule.factor(100), 0.2);
  EXPECT_EQ(schedule.factor(1000), 0.2);
}

TEST(Schedule, CosineFallsAlongHalfAPeriod) {
  const Schedule schedule = {Decay::kCosine, 20, 100, 0.1};
  for (int64_t step = 20; step <= 100; ++step) {
    const double angle = std::acos(-1.0) * static_cast<double>(step - 20) / 80;
    EXPECT_NEAR(schedule.factor(step), 0.1 + 0.9 * (1 + std::cos(angle)) / 2, 1e-15);
  }
  EXPECT_EQ(schedule.factor(20), 1.0);
  EXPECT_NEAR(schedule.factor(60), 0.55, 1e-15);
  EXPECT_NEAR(schedule.factor(100), 0.1, 1e-15);
  EXPECT_EQ(schedule.factor(1000), schedule.factor(100));
}

TEST(Schedule, NamesAreParsed) {
  ASSERT_TRUE(ParseDecay("linear").ok());
  EXPECT_EQ(*ParseDecay("constant"), Decay::kConstant);
  EXPECT_EQ(*ParseDecay("linear"), Decay::kLinear);
  EXPECT_EQ(*ParseDecay("cosine"), Decay::kCosine);
  EXPECT_EQ(ParseDecay("step").status().message(),
            "learning-rate schedule: got 'step', expected constant, linear or cosine");
}

}  // namespace
}  // namespace zg::optim
