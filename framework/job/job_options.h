// JobOptions: what every program that trains accepts on its command line, apart from flags of its
// own. The defaults are the program's to choose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/env.h"
#include "framework/base/status.h"
#include "framework/job/flag_parser.h"

namespace zg {

struct JobOptions {
  int ranks = 1;             // processes
  int ranks_in_process = 1;  // virtual ranks, instead of processes
  int zero_stage = 0;
  std::string device = "cpu";
  std::string dtype = "f32";
  int64_t steps = 100;
  int64_t batch = 8;          // samples per micro-batch
  int64_t micro_batches = 0;  // per step, over all ranks; 0: one per rank
  int64_t seed = 1;
  double clip_norm = 0;  // 0: gradients are not clipped
  std::string lr_schedule = "constant";
  int64_t warmup_steps = 0;
  double final_lr_factor = 0.1;
  int threads = 1;  // per rank
  double bucket_mb = 16;
  int64_t shard_min_elements = 0;
  std::string reduce_every = "micro-batch";
  std::vector<std::string> recompute;  // patterns of modules
  bool update_early = false;
  std::string on_non_finite = "stop";
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
  std::string print_ir;

  int64_t bucket_bytes() const { return static_cast<int64_t>(bucket_mb * (1 << 20)); }
};

// `options` holds the defaults and receives the flags.
void AddJobFlags(FlagParser* flags, JobOptions* options);

// Whether the flags of the schedule go together. Errors: one that the others leave without effect.
Status CheckSchedule(const FlagParser& flags, const JobOptions& options);

// Error: a policy for losses and gradients that are not finite, with f16, whose loss scaler
// decides.
Status CheckNonFinite(const FlagParser& flags, const JobOptions& options);

// Whether the flags of saving go together. Errors: one that has no effect without --save.
Status CheckSaving(const FlagParser& flags, const JobOptions& options);

// Whether the flags of GPUs go together. Errors: one that has no effect on the CPU, or on how the
// GPUs are connected.
Status CheckGpuFlags(const FlagParser& flags, const JobOptions& options);

// Whether this build, on this machine, can do what the flags ask for. Errors name the flag.
Status CheckSupported(const JobOptions& options);

// Fills in what depends on the number of ranks. Errors: virtual ranks in several processes; the
// micro-batches of a step do not divide.
Status ResolveForProcesses(int num_processes, JobOptions* options);

// Whether the files that the flags name can be read or written, asked before any work is done.
// Creates the directory of --print-ir. Nothing is left behind by the question.
Status CheckPaths(const JobOptions& options);

}  // namespace zg
