// Job: a training program from its command line to its end. Reads the flags, starts the ranks,
// connects them, and sees to it that a mistake on any rank ends all of them with one message.
//
//   int main(int argc, char** argv) {
//     zg::FlagParser flags("Trains a classifier.");  // plus flags of its own
//     zg::Job job = zg::Job::start(argc, argv, flags);
//     job.run([&](zg::Job& rank) -> zg::Status {
//       ZG_RETURN_IF_ERROR(model.Load(path));
//       ... rank.options().steps, rank.communicator() ...
//     });
//   }
//
// Exit codes: 0; 2 when the command line is wrong (kInvalidArgument); 1 for every other error; what
// mpirun says when a rank was killed.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/job/flag_parser.h"
#include "framework/job/job_options.h"

namespace zg {

class Job {
 public:
  // Returns once per process. Does not return for --help, for an error, and in the process that
  // started mpirun, which becomes the job's exit code. `flags` must outlive the job; the job's own
  // are added with `defaults`. Call it before anything else, threads above all.
  static Job start(int argc, char** argv, FlagParser& flags, const JobOptions& defaults = {});
  static Job start(int argc, char** argv);

  // Runs `body` on every rank of this process: here, or with --ranks-in-process N in N threads,
  // each with a Job of its own. Returns when all are ok; an error of any rank ends the job, printed
  // as by check_on_all_ranks. Every process must call it. A program that works without it cannot
  // have virtual ranks: its size() and communicator() then end the job with an error that says so.
  void run(const std::function<Status(Job&)>& body);

  Job(Job&&) noexcept;
  ~Job();

  int rank() const;
  int size() const;
  bool is_main() const { return rank() == 0; }  // the rank that prints and writes reports
  Communicator& communicator() const;
  const JobOptions& options() const;
  std::vector<ResolvedFlag> config() const;  // every flag with its value, for the report
  int num_planned_ranks() const;             // that the flags ask for; with --plan none is started
  int64_t resident_bytes_at_start() const;   // of this process, before any model was built

  // The graph's own options with the flags that were given on top; from now on they are those of
  // options() and config().
  CompileOptions apply_compile_flags(const CompileOptions& of_graph);
  // An error of compiling with these options, with the flags that were given for them.
  Status with_compile_flags(const Status& error) const;

  // Every rank must call this, each with what happened to it. Returns if all are ok; else rank 0
  // prints each error once with the ranks that have it, and the job ends.
  void check_on_all_ranks(const Status& mine);
  template <typename T>
  T value_on_all_ranks(StatusOr<T> mine) {
    check_on_all_ranks(mine.status());
    return std::move(mine).value();
  }

  // Ends the job for all ranks; any rank may call it at any time.
  [[noreturn]] void fail(const Status& status);

  // Ends this process in order; every rank must call it.
  [[noreturn]] void exit(int code);

 private:
  struct Impl;
  explicit Job(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace zg
