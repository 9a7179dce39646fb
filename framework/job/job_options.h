// JobOptions: the flags that every training program has besides its own. A program chooses the
// defaults.
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
  int threads = 1;                 // per rank
  std::string log_level = "info";  // one of LogLevels()
  // What the flags give, over these defaults for their help. A program's own settings go into
  // graph.config(), which flags override; `graph.config() = job.options().compile` makes these defaults
  // the program's.
  CompileOptions compile;
  int64_t steps = 100;
  int64_t batch = 8;  // samples per micro-batch
  int64_t seed = 1;
  std::string lr_schedule = "constant";
  int64_t warmup_steps = 0;
  double final_lr_factor = 0.1;
  bool detect_anomaly = false;
  bool profile = false;
  int64_t save_every = 0;                // in steps; 0: only a checkpoint at the end
  int keep = 0;                          // checkpoints; 0: all
  bool save_async = false;               // training goes on during a save
  std::string gpu_collectives = "auto";  // "peer", "nccl" or "host"
  bool fast_reduce = false;
  bool cuda_graph = false;
  bool tf32 = false;
  std::string gemm_choices;                             // a file
  double timeout_s = kDefaultCollectiveTimeoutSeconds;  // of a collective

  // Paths; "" when not given.
  std::string init;
  std::string save;
  std::string resume;
  std::string report;
  std::string metrics;
  int64_t metrics_histograms = 0;  // steps between them; 0: none
  std::string trace;
  int64_t trace_steps = 3;  // from the first step of this start of the program

  // Prints the plan of the program instead of running it; the files need this flag.
  bool plan = false;
  std::string json;
  std::string html;
  std::string prices;   // a report with a profile, for the times of the plan and --overlap auto
  std::string explain;  // a value of the program whose placement is explained instead
};

// `options` holds the defaults and receives the values.
void AddJobFlags(FlagParser* flags, JobOptions* options);

// Checks the flags of the schedule against each other. Error: a flag without effect.
Status CheckSchedule(const FlagParser& flags, const JobOptions& options);

// Checks the flags of saving against each other. Errors: a flag that needs --save; --init with
// --resume.
Status CheckSaving(const FlagParser& flags, const JobOptions& options);

// Checks the flags of devices against each other. Errors: a flag without effect on the CPU, or with
// these collectives; several threads on a GPU.
Status CheckGpuFlags(const FlagParser& flags, const JobOptions& options);

// Checks that this build and this machine support what the flags ask for. Errors name the flag.
Status CheckSupported(const JobOptions& options);

// Checks the flags of metrics and trace against each other. Error: a flag that needs --metrics or
// --trace.
Status CheckObserving(const FlagParser& flags, const JobOptions& options);

// Checks the flags of the plan against each other. Error: a flag that needs --plan.
Status CheckPlan(const FlagParser& flags, const JobOptions& options);

// Fills in the options that depend on the number of ranks. Errors: virtual ranks in several
// processes; those of ResolveCompileFlags.
Status ResolveForProcesses(const FlagParser& flags, int num_processes, JobOptions* options);

// Checks, before any work, that the files that the flags name can be read or written. Creates the
// directories of --print-ir and --metrics and leaves nothing else behind.
Status CheckPaths(const JobOptions& options);

}  // namespace zg
