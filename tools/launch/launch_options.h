// The command line of tools/launch: its own flags, "--", then the program with its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg::launch {

struct HostSlots {
  std::string host;
  int slots = 1;  // maximum number of ranks
};

struct Options {
  int ranks = 1;
  int min_ranks = 0;  // 0: as many as ranks
  int max_restarts = 3;
  std::vector<HostSlots> hosts;      // filled in this order; none: this host
  std::vector<std::string> command;  // the program by its path, and its arguments

  // From the program's command line.
  std::string save;           // "": the program saves nothing
  int64_t micro_batches = 1;  // one per rank of the first attempt, unless the flag is given
};

// "a:2,b:2": the hosts that `num_ranks` ranks need, in mpirun's form; "" without hosts.
std::string HostsFor(const Options& options, int num_ranks);

// The host of a rank; "" without hosts.
std::string HostOfRank(const Options& options, int rank);

// `help` is set if help was asked for, to the text to print. Errors name the flag.
StatusOr<Options> ParseCommandLine(int argc, const char* const* argv, std::string* help);

}  // namespace zg::launch
