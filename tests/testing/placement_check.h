// The effect of passes when a program of one rank becomes one of several: each check compares runs
// that have taken place, and returns the text of a failure, empty if there is none.
#pragma once

#include <string>

#include "tests/testing/run_comparison.h"

namespace zg::testing {

// infer-sbp: the results that the sequential program computes for one micro-batch after the other
// are side by side on the ranks. A sum over ranks in the middle of backward has another order.
std::string CheckInferSbp(const RunComparison& runs);

// average-eval-results: a loss of an eval section is divided by the ranks, whose terms will be
// summed.
std::string CheckAverageEvalResults(const RunComparison& runs);

}  // namespace zg::testing
