// The result of a search for people: a table of all trials, and the command of the fastest
// candidate.
#pragma once

#include <string>

#include "tools/tune/search.h"

namespace zg::tune {

std::string OutcomeText(const Outcome& outcome, const Options& options, double seconds);

}  // namespace zg::tune
