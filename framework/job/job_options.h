// JobOptions: what every program that trains accepts on its command line, apart from flags of its
// own. The defaults are the program's to choose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/env.h"
#include "framework/base/status.h"
#include "framework/job/flag_parser.h"
#include "framework/passes/compile_options.h"

namespace zg {

struct JobOptions {
  int ranks = 1;             // processes
  int ranks_in_process = 1;  // virtual ranks, instead of processes
  std::string device = "cpu";
  std::string log_level = "info";  // one of LogLevels()
  CompileOptions compile;
  int64_t steps = 100;
  int64_t batch = 8;  // samples per micro-batch
  int64_t seed = 1;
  std::string lr_schedule = "constant";
  int64_t warmup_steps = 0;
  double final_lr_factor = 0.1;
  bool detect_anomaly = false;
  bool profile = false;
  int64_t save_every = 0;                // steps; 0: a checkpoint at the end only
  int keep = 0;                          // checkpoints; 0: all
  bool save_async = false;               // training goes on meanwhile
  std::string gpu_collectives = "nccl";  // or "host"
  bool fast_reduce = false;
  bool cuda_graph = false;
  bool tf32 = false;
  double timeout_s = kDefaultCollectiveTimeoutSeconds;  // of a collective

  // Paths; "" when not given.
  std::string init;
  std::string save;
  std::string resume;
  std::string report;

  // The plan of the program instead of a run; the files only with it.
  bool plan = false;
  std::string json;
  std::string html;
};

// `options` holds the defaults and receives the flags.
void AddJobFlags(FlagParser* flags, JobOptions* options);

// Whether the flags of the schedule go together. Errors: one that the others leave without effect.
Status CheckSchedule(const FlagParser& flags, const JobOptions& options);

// Whether the flags of saving go together. Errors: one that has no effect without --save.
Status CheckSaving(const FlagParser& flags, const JobOptions& options);

// Whether the flags of GPUs go together. Errors: one that has no effect on the CPU, or on how the
// GPUs are connected.
Status CheckGpuFlags(const FlagParser& flags, const JobOptions& options);

// Whether this build, on this machine, can do what the flags ask for. Errors name the flag.
Status CheckSupported(const JobOptions& options);

// Whether the flags of the plan go together. Errors: one that has no effect without --plan.
Status CheckPlan(const FlagParser& flags, const JobOptions& options);

// Fills in what depends on the number of ranks. Errors: virtual ranks in several processes; those
// of ResolveCompileFlags.
Status ResolveForProcesses(const FlagParser& flags, int num_processes, JobOptions* options);

// Whether the files that the flags name can be read or written, asked before any work is done.
// Creates the directory of --print-ir. Nothing is left behind by the question.
Status CheckPaths(const JobOptions& options);

}  // namespace zg
