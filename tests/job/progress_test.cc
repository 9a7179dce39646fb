#include "framework/job/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace zg {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProgressOptions Options(int columns) {
  ProgressOptions options;
  options.total_steps = 300;
  options.tokens_per_step = 512;
  options.terminal_columns = columns;
  return options;
}

StepRecord Record(int64_t step, double ms) {
  StepRecord record;
  record.step = step;
  record.loss = 2.7713401;
  record.lr = 1e-3;
  record.ms = ms;
  return record;
}

TEST(MovingAverage, LeavesOutTheFirstStep) {
  MovingAverage average;
  average.Add(1000);
  EXPECT_FALSE(average.has_value());
  average.Add(10);
  average.Add(30);
  EXPECT_EQ(average.ms(), 20);
}

TEST(MovingAverage, ForgetsOldSteps) {
  MovingAverage average;
  for (int i = 0; i < 100; ++i) average.Add(1000);
  for (int i = 0; i < 20; ++i) average.Add(10);
  EXPECT_EQ(average.ms(), 10);
}

TEST(Progress, OneLinePerStepWithoutATerminal) {
  Progress progress(Options(0));
  testing::internal::CaptureStdout();
  progress.Step(Record(1, 99));
  progress.Step(Record(2, 12.34));
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "step   1/300  loss 2.771340  lr 1.000e-03  99.0 ms  - tokens/s  MFU n/a\n"
            "step   2/300  loss 2.771340  lr 1.000e-03  12.3 ms  41.5k tokens/s  MFU n/a\n");
}

TEST(Progress, ShowsWhatElseIsKnown) {
  ProgressOptions options = Options(0);
  options.flops_per_step = 1e9;
  options.peak_flops = 1e12;
  options.peak_memory_bytes = 3'000'000;
  Progress progress(options);
  testing::internal::CaptureStdout();
  progress.Step(Record(1, 10));
  progress.Step(Record(2, 10));
  testing::internal::GetCapturedStdout();
  StepRecord record = Record(3, 10);
  EXPECT_THAT(Progress(Options(120)).Bar(record), Not(HasSubstr("norm")));
  record.grad_norm = 1.20449;
  EXPECT_EQ(progress.Line(record),
            "step   3/300  loss 2.771340  grad norm 1.204  lr 1.000e-03  10.0 ms  51.2k tokens/s  "
            "MFU 10.0%  peak 3.0 MB");
  EXPECT_THAT(Progress(Options(120)).Bar(record), HasSubstr("loss 2.7713 norm 1.2 lr 0.001 "));
}

TEST(Progress, TheBarFitsTheTerminal) {
  for (int columns : {1, 10, 40, 80, 100, 200}) {
    Progress progress(Options(columns));
    EXPECT_EQ(progress.Bar(Record(150, 10)).size(), columns < 2 ? 1 : columns - 1);
  }
  const Progress progress(Options(120));
  EXPECT_THAT(progress.Bar(Record(150, 10)), HasSubstr("[###############...............]"));
  EXPECT_THAT(progress.Bar(Record(300, 10)), HasSubstr("[##############################]"));
  EXPECT_THAT(Progress(Options(40)).Bar(Record(150, 10)), Not(HasSubstr("[")));
}

TEST(Progress, TheBarIsRedrawnOnStandardErrorAndEndsWithALine) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    Progress progress(Options(80));
    for (int step = 1; step <= 300; ++step) progress.Step(Record(step, 0.1));
  }
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(shown.substr(0, 11), "\rstep 1/300");
  EXPECT_THAT(shown, HasSubstr("\rstep 300/300 ["));
  EXPECT_EQ(shown.back(), '\n');
  EXPECT_LT(shown.size(), 80u * 30);  // not one drawing per step
}

}  // namespace
}  // namespace zg
