// What passes do when a program of one rank becomes one of several: each check compares runs that
// have taken place, and returns the text of what is wrong, empty when nothing is.
#pragma once

#include <string>

#include "tests/testing/run_comparison.h"

namespace zg::testing {

// infer-sbp: what the micro-batches give one after the other in the sequential program, the ranks
// give side by side. A sum over ranks in the middle of backward has another order.
std::string CheckInferSbp(const RunComparison& runs);

// average-eval-results: a loss of an eval section is divided by the ranks, whose terms will be
// summed.
std::string CheckAverageEvalResults(const RunComparison& runs);

}  // namespace zg::testing
