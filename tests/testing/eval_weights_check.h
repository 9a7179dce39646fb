// eval-weights: eval programs compute from other weights than they did, so they are compared with
// those before the pass that find these weights in their parameters.
#pragma once

#include <string>

#include "tests/testing/run_comparison.h"

namespace zg::testing {

// The runs have taken place. What is wrong; empty when nothing is.
std::string CheckEvalWeights(const RunComparison& runs);

}  // namespace zg::testing
