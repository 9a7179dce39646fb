// A trial: a few steps of the program, in processes of their own, and the numbers from its report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/job/launcher.h"

namespace zg::tune {

struct Trial {
  std::vector<double> step_ms;  // without the first, which warms up
  int64_t peak_bytes = 0;       // of the arena of the rank with the largest one
  int64_t batch = 0;            // samples per micro-batch, as the program understood its flags
  int64_t micro_batches = 0;
  std::string inputs;  // of one micro-batch, with their shapes
};

// Errors: text that is not a report of a program that uses Job, or a report of fewer than two
// steps.
StatusOr<Trial> ReadTrial(std::string_view report);

// Runs the command, which writes a report into the file, until the report exists; later work of the
// program is not awaited. Errors: kDeadlineExceeded after so many seconds; kAborted if a signal
// asks for an end; a program that cannot be started, fails, or leaves no report, each with the last
// error that it wrote.
StatusOr<Trial> RunTrial(const std::vector<std::string>& command, const std::string& report,
                         double seconds, const Supervisor& supervisor);

}  // namespace zg::tune
