// What build-backward must have done: every parameter that the loss reads has a gradient, and that is
// the slope of the mean loss, by differences.
#pragma once

#include <string>

#include "tests/testing/run_comparison.h"

namespace zg::testing {

// Runs the graphs for a step. The text of what is wrong; empty when nothing is.
std::string CheckBuildBackward(RunComparison& runs);

}  // namespace zg::testing
