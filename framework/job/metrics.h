// Metrics: the numbers of a run while it runs, in a directory:
//
//   metrics.jsonl          a line per step, {"step":7,"time":1763830000.5,"loss":2.77,"lr":0.001},
//                          and one for values that come later, {"step":7,...,"validation_loss":2.9}
//   events.out.tfevents.*  the same for TensorBoard; a file per start of the program
//
// One process of a job has it. Values survive the end of the process once Write has returned.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/value_histogram.h"
#include "framework/io/append_file.h"
#include "framework/io/tensorboard_events.h"

namespace zg {

class Metrics {
 public:
  // Continues after step `steps_done` in the directory, which is created if it is missing. Later
  // steps, which an earlier run has written and this one runs again, are removed from
  // metrics.jsonl; TensorBoard is told to drop them. Errors: a directory or file that cannot be
  // created or written, or that another process writes; lines that are not in this format.
  static StatusOr<std::unique_ptr<Metrics>> Open(const std::string& directory, int64_t steps_done);

  // How many steps were removed.
  int64_t num_removed_steps() const { return num_removed_steps_; }

  // Writes values of a step, which must not be before the last written one. Names that the step
  // already has are left out.
  Status Write(int64_t step, const std::vector<NamedScalar>& values);

  // Writes histograms of a step, for TensorBoard only.
  Status WriteHistograms(int64_t step, const std::map<std::string, ValueHistogram>& histograms);

 private:
  Metrics(AppendFile lines, AppendFile events)
      : lines_(std::move(lines)), events_(std::move(events)) {}

  AppendFile lines_;
  AppendFile events_;
  int64_t num_removed_steps_ = 0;
  int64_t last_step_ = 0;
  std::set<std::string> names_of_last_step_;
};

}  // namespace zg
