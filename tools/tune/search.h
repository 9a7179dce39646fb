// Search: finds the candidate with the fastest steps by trials in turns, because a machine's speed
// varies over time. After each round hopeless candidates are dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "tools/tune/candidates.h"
#include "tools/tune/trial.h"

namespace zg::tune {

// The functions that a search uses for trials.
struct Machinery {
  // Runs so many steps of a candidate within a time limit; errors like RunTrial.
  std::function<StatusOr<Trial>(const Candidate&, int64_t steps, double seconds)> run;
  std::function<double()> seconds_passed;       // since the start
  std::function<void(const std::string&)> say;  // prints a line of progress
};

struct Tried {
  Candidate candidate;
  std::vector<double> step_ms = {};  // of all its trials
  int64_t peak_bytes = 0;
  double seconds = 0;        // time of its last trial
  bool is_hopeless = false;  // dropped after the round that showed it
  bool has_failed = false;   // in a later round

  double median_ms() const;
};

struct Outcome {
  Work work;
  std::vector<Tried> tried;  // the fastest first, and not empty
  std::vector<LeftOut> left_out;
  int rounds = 0;
};

// Values of --overlap after the first are tried with the candidates that remain after the first
// round. Errors: the first candidate fails; the time is over before every candidate had its first
// trial; a signal.
StatusOr<Outcome> Search(const Options& options, const Machinery& machinery);

}  // namespace zg::tune
