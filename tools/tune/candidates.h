// Candidates: the ways of running a program on this machine, all with the same samples per step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/tune/tune_options.h"

namespace zg::tune {

struct Candidate {
  int ranks = 1;
  int threads = 1;           // of each rank
  std::string overlap = {};  // "": the program's own, because a single rank sends nothing
  // 0: the program's own values.
  int64_t batch = 0;          // samples per micro-batch
  int64_t micro_batches = 0;  // per step over all ranks
};

std::string NameOf(const Candidate& candidate);  // "2 ranks x 1 thread, overlap off"

// The amount of data of a step in the run that the others are compared with.
struct Work {
  int ranks = 1;
  int64_t batch = 0;
  int64_t micro_batches = 0;
  int64_t samples() const { return batch * micro_batches; }
};

struct LeftOut {
  std::string what;
  std::string why;
};

struct Candidates {
  std::vector<Candidate> candidates;
  std::vector<LeftOut> left_out;
};

// The run that determines the work: the fewest ranks, each with as many threads as fit. Error: none
// of the requested ranks and threads fit.
StatusOr<Candidate> FirstCandidate(const Options& options);

// Every way of sharing the work, with the first value of --overlap; FirstCandidate is the first.
// Micro-batches stay as they are if the ranks divide them, so that the bits do, too; otherwise
// every rank has one. Candidates that use more than the cores are left out, and so are ranks that
// do not divide the samples.
Candidates CandidatesFor(const Options& options, const Work& work);

// The same with the other values of --overlap; empty for a single rank.
std::vector<Candidate> WithOtherOverlaps(const Candidate& candidate, const Options& options);

// The program's command with the candidate's flags.
std::vector<std::string> CommandOf(const Candidate& candidate, const Options& options);

// The same for so many steps, without any output except a report in a file.
std::vector<std::string> TrialCommandOf(const Candidate& candidate, const Options& options,
                                        int64_t steps, const std::string& report);

// As text for a shell, with quotes where they are needed.
std::string ShellText(const std::vector<std::string>& command);

}  // namespace zg::tune
