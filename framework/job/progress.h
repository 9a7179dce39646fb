// Progress: shows a run while it runs. On a terminal it redraws a bar on standard error; elsewhere
// it prints one line per step on standard output. Only for rank 0.
//
//   step  12/300  loss 2.771340  grad norm 1.204  lr 1.000e-03  12.3 ms  41.6k tokens/s  MFU n/a
//   0:04 left
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "framework/job/report.h"

namespace zg {

struct ProgressOptions {
  int64_t total_steps = 0;
  double peak_flops = 0;  // per second, of all ranks' processors; 0: unknown, MFU is n/a
  int64_t peak_memory_bytes = 0;
  int terminal_columns = 0;  // TerminalColumns(); 0: lines instead of a bar
};

// The mean of a value of the last steps, without the first step of the run.
class MovingAverage {
 public:
  void Add(double value);
  bool has_value() const { return !window_.empty(); }
  double mean() const;  // 0 before the second step

 private:
  static constexpr size_t kWindow = 20;
  bool is_first_ = true;
  std::deque<double> window_;
};

// Estimates the rest of a run: for each step the mean of recent ones, without the slowest and
// fastest quarter, plus the average time between two steps, such as evaluations and checkpoints,
// since the run began. The first step counts only until there is a second.
class TimeLeft {
 public:
  // A step of `ms` has ended at `now_s` on a monotonic clock.
  void Add(double ms, double now_s);
  double Seconds(int64_t num_steps) const;  // 0 before the first step

 private:
  static constexpr size_t kWindow = 40;
  std::deque<double> window_;  // ms
  bool is_warm_ = false;       // the first step is not in the window
  double last_end_s_ = 0;
  double between_s_ = 0;  // total
  int64_t num_between_ = 0;
};

class Progress {
 public:
  explicit Progress(ProgressOptions options) : options_(options) {}
  ~Progress() { Finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Step(const StepRecord& record);

  // Ends the line of the bar. The destructor does so, too.
  void Finish();

  // The text that Step prints for `record`, which it has counted, without the end of the line.
  std::string Line(const StepRecord& record) const;
  std::string Bar(const StepRecord& record) const;

 private:
  std::string TokenRate() const;
  std::string Utilization() const;
  double PerSecond(const MovingAverage& amount) const;  // 0: unknown yet
  std::string Remaining(int64_t step) const;  // with a space before it; "" after the last step

  ProgressOptions options_;
  MovingAverage ms_, tokens_, flops_;
  TimeLeft time_left_;
  double last_redraw_s_ = 0;
  bool bar_is_open_ = false;
};

}  // namespace zg
