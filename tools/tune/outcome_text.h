// What a search found, for people: a table of what was tried, and the command of the fastest.
#pragma once

#include <string>

#include "tools/tune/search.h"

namespace zg::tune {

std::string OutcomeText(const Outcome& outcome, const Options& options, double seconds);

}  // namespace zg::tune
