// The launcher: a program with --ranks N starts N processes of itself under mpirun. //tools:launch
// starts ranks on several hosts. A program inside an MPI job does not launch.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/job/child_process.h"
#include "framework/job/mpirun_messages.h"
#include "framework/job/rank_output.h"

namespace zg {

// The environment's description of the MPI job that this process is a rank of.
struct MpiJob {
  int rank = 0;
  int size = 0;  // 0: unknown
};
std::optional<MpiJob> FindMpiJob();  // nothing outside a job

struct LaunchOptions {
  int num_ranks = 1;
  // The ranks save a checkpoint and end at SIGTERM. mpirun would kill them a second after a TERM,
  // so the first TERM is sent as USR2, which mpirun forwards and which means the same to the ranks.
  bool saves_at_term = false;
};

// Runs ranks of this program on this host, with the arguments argv[1], argv[2], ...; waits for them
// and returns the exit code of the job. INT, TERM, HUP, QUIT, USR1 and USR2 are forwarded to mpirun
// (HUP and QUIT as TERM). mpirun forwards USR1 and USR2 to the ranks and ends them at the others.
// Must be called before the process has threads. Errors: no mpirun, or one that is not Open MPI's;
// no temporary directory.
StatusOr<int> LaunchRanks(const LaunchOptions& options, int argc, const char* const* argv);

// A job under mpirun, of LaunchRanks or tools/launch.
struct MpirunJob {
  int num_ranks = 1;
  // "a:2,b:2": hosts, each with its maximum number of ranks, filled in this order. Between hosts
  // Open MPI's own settings apply (OMPI_MCA_...). "": this host.
  std::string hosts;
  std::vector<std::string> command;  // the program and its arguments
  bool saves_at_term = false;        // as in LaunchOptions
  // Filters the ranks' output line by line. Null: the output is shown at once.
  RankOutput* output = nullptr;
};

struct MpirunEnd {
  int code = 0;
  bool was_stopped = false;  // INT, TERM, HUP or QUIT was forwarded
  std::optional<RankEnd> first_end;
  std::string lost_host;  // "" if none was
};

// The signals that a supervisor receives for its jobs, and its own directory for Open MPI's files.
struct Supervisor {
  SignalQueue signals;
  std::string directory;
};

// Runs a job and waits for it. Errors: those of LaunchRanks.
StatusOr<MpirunEnd> RunMpirun(const MpirunJob& job, const Supervisor& supervisor);

// Runs `body` in a process of its own, the supervisor. If either of the two processes is killed,
// the other cleans up: the supervisor ends its job, and each of them removes the directory. Returns
// the exit code: that of `body`, or 1 after its error, which is printed after `context`.
StatusOr<int> RunSupervised(std::string_view context,
                            const std::function<StatusOr<int>(const Supervisor&)>& body);

// The mpirun on PATH. Error: there is none; the message says what to install.
StatusOr<std::string> FindMpirun();

// The program of this name on PATH.
std::optional<std::string> FindOnPath(std::string_view name);

}  // namespace zg
