// Job: a training program from its command line to its end. It parses the flags, starts and
// connects the ranks, and ends all of them with one message if any of them has an error.
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
// Exit codes: 0 for success; 2 for a wrong command line (kInvalidArgument); 1 for every other
// error; mpirun's code if a rank was killed.
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
  // Starts the job. Returns on every rank. Does not return after --help, after an error, or in the
  // process that starts mpirun, which exits with the job's code. Adds the job's own flags, with
  // `defaults`, to `flags`, which must outlive the job. Call it first, in particular before there
  // are threads.
  static Job start(int argc, char** argv, FlagParser& flags, const JobOptions& defaults = {});
  static Job start(int argc, char** argv);

  // Runs `body` on every rank of this process: in the calling thread, or with --ranks-in-process N
  // in N threads, each with a Job of its own. Returns when all are ok; an error of any rank ends
  // the job like check_on_all_ranks. Every process must call it. Without run() a program has no
  // virtual ranks: size() and communicator() then end the job with an error.
  void run(const std::function<Status(Job&)>& body);

  Job(Job&&) noexcept;
  ~Job();

  int rank() const;
  int size() const;
  // The index of this rank among the ranks that compute different micro-batches, which selects its
  // data, and the number of these ranks. Ranks that share micro-batches along an axis of --mesh
  // (tensor) count once.
  int data_rank() const;
  int num_data_ranks() const;
  bool is_main() const { return rank() == 0; }  // the rank that prints and writes reports
  Communicator& communicator() const;
  const JobOptions& options() const;
  std::vector<ResolvedFlag> config() const;  // every flag with its value, for the report
  int num_planned_ranks() const;             // according to the flags; --plan starts none of them
  int64_t resident_bytes_at_start() const;   // of this process, before any model was built

  // Returns the options of the graph, overridden by the flags that were given. From now on
  // options() and config() have them, too.
  CompileOptions apply_compile_flags(const CompileOptions& of_graph);
  // An error of compiling with these options, together with the flags that were given for them.
  Status with_compile_flags(const Status& error) const;

  // Every rank must call this with its status. Returns if all are ok; otherwise rank 0 prints each
  // distinct error with its ranks, and the job ends.
  void check_on_all_ranks(const Status& mine);
  template <typename T>
  T value_on_all_ranks(StatusOr<T> mine) {
    check_on_all_ranks(mine.status());
    return std::move(mine).value();
  }

  // Takes the files that the job's flags name for the training of this graph to write: the directory of
  // checkpoints, ..., and the report if it `reports`. Error: another training of the job has them.
  Status claim_files(const std::string& graph, bool reports);

  // Ends the job on all ranks with an error. Any rank may call it at any time.
  [[noreturn]] void fail(const Status& status);

  // Ends the job normally. Every rank must call it.
  [[noreturn]] void exit(int code);

 private:
  struct Impl;
  explicit Job(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace zg
