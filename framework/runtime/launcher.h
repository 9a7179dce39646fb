// The launcher: a program that is given --ranks N starts N of itself under mpirun, so that nobody
// has to know how. For ranks on several hosts, call mpirun by hand; the program then finds itself
// inside a job and does not launch.
#pragma once

#include <optional>
#include <string>

#include "framework/base/status.h"

namespace zg {

// What the environment says about the MPI job that this process is a rank of.
struct MpiJob {
  int rank = 0;
  int size = 0;  // 0: it does not say
};
std::optional<MpiJob> FindMpiJob();  // nothing outside a job

struct LaunchOptions {
  int num_ranks = 1;
  // The ranks save a checkpoint and end at SIGTERM. mpirun would kill them a second after it: the
  // first TERM becomes USR2, which it passes on and which means the same to them.
  bool saves_at_term = false;
};

// Runs ranks of this program on this host, with the arguments argv[1], argv[2], ...; waits for them
// and returns the exit code of the job. INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to mpirun
// (HUP and QUIT as TERM), which passes USR1 and USR2 on to the ranks and ends them at the others.
// Must be called before the process has threads.
// Errors: no mpirun, or one that is not Open MPI's; no temporary directory.
StatusOr<int> LaunchRanks(const LaunchOptions& options, int argc, const char* const* argv);

// The mpirun on PATH. Error: there is none, with what to install.
StatusOr<std::string> FindMpirun();

}  // namespace zg
