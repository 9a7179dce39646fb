#include "framework/job/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace zg {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

ProgressOptions Options(int columns) {
  ProgressOptions options;
  options.total_steps = 300;
  options.terminal_columns = columns;
  return options;
}

StepRecord Record(int64_t step, double ms) {
  StepRecord record;
  record.step = step;
  record.loss = 2.7713401;
  record.lr = 1e-3;
  record.ms = ms;
  record.work.tokens = 512;
  record.work.flops = 1e9;
  return record;
}

TEST(MovingAverage, LeavesOutTheFirstStep) {
  MovingAverage average;
  average.Add(1000);
  EXPECT_FALSE(average.has_value());
  average.Add(10);
  average.Add(30);
  EXPECT_EQ(average.mean(), 20);
}

TEST(MovingAverage, ForgetsOldSteps) {
  MovingAverage average;
  for (int i = 0; i < 100; ++i) average.Add(1000);
  for (int i = 0; i < 20; ++i) average.Add(10);
  EXPECT_EQ(average.mean(), 10);
}

TEST(TimeLeft, TheFirstStepCountsAlone) {
  TimeLeft left;
  left.Add(5000, 100);
  EXPECT_DOUBLE_EQ(left.Seconds(10), 50);
  left.Add(1000, 101);
  EXPECT_DOUBLE_EQ(left.Seconds(10), 10);
  left.Add(3000, 104);
  EXPECT_DOUBLE_EQ(left.Seconds(10), 20);
  EXPECT_EQ(left.Seconds(0), 0);
}

TEST(TimeLeft, SlowAndFastStepsDoNotSwayIt) {
  TimeLeft left;
  double now_s = 0;
  for (int i = 0; i < 100; ++i) {
    const double ms = i % 10 == 0 ? 30000 : i % 10 == 1 ? 1 : 1000;
    left.Add(ms, now_s += ms / 1e3);
  }
  EXPECT_NEAR(left.Seconds(10), 10, 1e-9);
  for (int i = 0; i < 40; ++i) left.Add(10, now_s += 0.01);
  EXPECT_NEAR(left.Seconds(10), 0.1, 1e-9);
}

TEST(TimeLeft, CountsWhatComesBetweenSteps) {
  TimeLeft left;
  double now_s = 0;
  for (int i = 0; i < 101; ++i) {
    if (i > 0 && i % 10 == 0) now_s += 20;  // an evaluation
    left.Add(1000, now_s += 1);
  }
  EXPECT_NEAR(left.Seconds(10), 10 * (1 + 2), 1e-9);
  left.Add(9000, now_s + 1);  // inconsistent clocks
  EXPECT_NEAR(left.Seconds(10), 10 * (1 + 200.0 / 101), 1e-9);
}

TEST(Progress, OneLinePerStepWithoutATerminal) {
  Progress progress(Options(0));
  testing::internal::CaptureStdout();
  progress.Step(Record(1, 99));
  progress.Step(Record(2, 12.34));
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "step   1/300  loss 2.771340  lr 1.000e-03  99.0 ms  - tokens/s  MFU n/a  0:30 left\n"
            "step   2/300  loss 2.771340  lr 1.000e-03  12.3 ms  41.5k tokens/s  MFU n/a  "
            "0:04 left\n");
}

TEST(Progress, ShowsWhatElseIsKnown) {
  ProgressOptions options = Options(0);
  options.peak_flops = 1e12;
  options.peak_memory_bytes = 3'000'000;
  Progress progress(options);
  testing::internal::CaptureStdout();
  progress.Step(Record(1, 10));
  progress.Step(Record(2, 10));
  testing::internal::GetCapturedStdout();
  StepRecord record = Record(3, 10);
  options.terminal_columns = 120;
  Progress on_terminal(options);
  on_terminal.Step(record);
  EXPECT_THAT(on_terminal.Bar(record), Not(HasSubstr("norm")));
  record.grad_norm = 1.20449;
  EXPECT_THAT(
      progress.Line(record),
      HasSubstr("step   3/300  loss 2.771340  grad norm 1.204  lr 1.000e-03  10.0 ms  51.2k "
                "tokens/s  MFU 10.0%  peak 3.0 MB  0:03 left"));
  EXPECT_THAT(on_terminal.Bar(record), HasSubstr("loss 2.7713 norm 1.2 lr 0.001 "));
}

TEST(Progress, AResumedRunCountsItsOwnSteps) {
  Progress progress(Options(0));
  testing::internal::CaptureStdout();
  progress.Step(Record(280, 1000));
  progress.Step(Record(281, 500));
  progress.Step(Record(300, 500));
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_THAT(shown, HasSubstr("MFU n/a  0:20 left\nstep 281"));
  EXPECT_THAT(shown, HasSubstr("MFU n/a  0:10 left\nstep 300"));  // 19 * 0.5
  EXPECT_THAT(shown, EndsWith("MFU n/a\n"));
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
