// The check of build-backward: every parameter that the loss reads has a gradient, which is the
// slope of the mean loss, computed by differences.
#pragma once

#include <string>

#include "tests/testing/run_comparison.h"

namespace zg::testing {

// Runs the graphs for a step. Returns the text of a failure; empty if there is none.
std::string CheckBuildBackward(RunComparison& runs);

}  // namespace zg::testing
