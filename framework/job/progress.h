// Progress: shows a run while it runs. On a terminal it redraws a bar on standard error; elsewhere
// it prints one line per step on standard output. For rank 0 alone.
//
//   step  12/300  loss 2.771340  grad norm 1.204  lr 1.000e-03  12.3 ms  41.6k tokens/s  MFU n/a
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "framework/job/report.h"

namespace zg {

struct ProgressOptions {
  int64_t total_steps = 0;
  int64_t tokens_per_step = 0;  // over all ranks; 0: a model without tokens
  double flops_per_step = 0;    // over all ranks
  double peak_flops = 0;        // per second, of all ranks' processors; 0: unknown, MFU is n/a
  int64_t peak_memory_bytes = 0;
  int terminal_columns = 0;  // TerminalColumns(); 0: lines instead of a bar
};

// The mean time of the last steps, without the first step of the run.
class MovingAverage {
 public:
  void Add(double ms);
  bool has_value() const { return !window_.empty(); }
  double ms() const;

 private:
  static constexpr size_t kWindow = 20;
  bool is_first_ = true;
  std::deque<double> window_;
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

  // The text that Step prints for `record`, without the end of the line.
  std::string Line(const StepRecord& record) const;
  std::string Bar(const StepRecord& record) const;

 private:
  std::string TokenRate() const;
  std::string Utilization() const;

  ProgressOptions options_;
  MovingAverage average_;
  double last_redraw_s_ = 0;
  bool bar_is_open_ = false;
};

}  // namespace zg
