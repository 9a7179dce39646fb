// The command line of tools/tune: its own flags and "--", if there are any, then the program with
// its arguments.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg::tune {

struct Options {
  double seconds = 120;  // for everything
  int cores = 1;         // processors to use

  // Values to try, none of them empty. A value that the program's own flags set is the only one.
  std::vector<int> ranks;
  std::vector<int> threads;           // per rank; empty: as many as fit, and half of them
  std::vector<std::string> overlaps;  // values of --overlap

  std::vector<std::string> command;  // the program by its path, and its arguments
};

// `help` is set if help was asked for, to the text to print. Errors name the flag.
StatusOr<Options> ParseCommandLine(int argc, const char* const* argv, std::string* help);

}  // namespace zg::tune
