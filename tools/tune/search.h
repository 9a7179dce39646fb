// Search: which candidate has the fastest steps, found by trials in turns, since a machine is faster
// at one time than at another. After each round what is hopeless is not tried again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "tools/tune/candidates.h"
#include "tools/tune/trial.h"

namespace zg::tune {

// What a search does trials with.
struct Machinery {
  // Runs so many steps of a candidate within a time; errors as those of RunTrial.
  std::function<StatusOr<Trial>(const Candidate&, int64_t steps, double seconds)> run;
  std::function<double()> seconds_passed;       // since the start
  std::function<void(const std::string&)> say;  // a line on what is going on
};

struct Tried {
  Candidate candidate;
  std::vector<double> step_ms = {};  // of all its trials
  int64_t peak_bytes = 0;
  double seconds = 0;        // that its last trial took
  bool is_hopeless = false;  // not in the rounds after the one that showed it
  bool has_failed = false;   // in a later round

  double median_ms() const;
};

struct Outcome {
  Work work;
  std::vector<Tried> tried;  // the fastest first, and not empty
  std::vector<LeftOut> left_out;
  int rounds = 0;
};

// Values of --overlap beside the first are tried with what is not hopeless after the first round.
// Errors: the first candidate fails; the time is over before every candidate had its first trial; a
// signal.
StatusOr<Outcome> Search(const Options& options, const Machinery& machinery);

}  // namespace zg::tune
