// The command line of tools/launch: its own flags, "--", then the program with its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg::launch {

struct LaunchOptions {
  int ranks = 1;
  int min_ranks = 0;  // 0: as many as ranks
  int max_restarts = 3;
  std::string hosts;
  std::vector<std::string> command;  // the program by its path, and its arguments

  // Of the command line.
  std::string save;           // "": the program saves nothing
  int64_t micro_batches = 1;  // one per rank of the first attempt, if it does not say
};

// `help` is set if help was asked for, to the text to print. Errors name the flag.
StatusOr<LaunchOptions> ParseCommandLine(int argc, const char* const* argv, std::string* help);

}  // namespace zg::launch
