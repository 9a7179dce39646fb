// PlanOptions: what tools/plan is asked: a model and its sizes, how it is trained and on how many
// ranks, and the machine that times are estimated for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/job/flag_parser.h"

namespace zg::plan {

struct PlanOptions {
  // The model. The sizes that it does not have are not looked at.
  std::string model = "gpt";    // gpt, recipe or classifier
  std::string preset = "mini";  // of gpt's sizes
  int64_t layers = 0;           // gpt, recipe
  int64_t heads = 0;            // gpt
  int64_t channels = 0;         // gpt
  int64_t context = 0;          // gpt
  int64_t vocabulary = 0;       // gpt
  int64_t width = 0;            // recipe
  double dropout = 0.0;         // gpt

  // How it is trained.
  int ranks = 1;
  int zero_stage = 0;
  int64_t batch = 8;          // samples per micro-batch
  int64_t micro_batches = 0;  // per step, over all ranks; 0: one per rank
  double bucket_mb = 16;
  int64_t shard_min_elements = 0;
  std::string dtype = "f32";                 // f32, bf16 or f16
  std::vector<std::string> recompute;        // patterns of modules
  std::string reduce_every = "micro-batch";  // or step
  double clip_norm = 0;                      // 0: gradients are not clipped
  bool update_early = false;
  std::string on_non_finite = "stop";

  std::string comm = "shared";  // how ranks talk: by shared memory or by messages

  // The machine.
  double bandwidth_gb_s = 10;  // of one rank's link
  double latency_us = 10;      // of one message
  double gflops = 100;         // of one rank

  // Other questions than what the job needs.
  bool compare_stages = true;
  std::string fit;            // bytes per rank, "8G"; "": not asked
  double num_parameters = 0;  // the paper's formulas for so many; 0: not asked

  // Files to write; "": none.
  std::string json;
  std::string html;

  int64_t bucket_bytes() const { return static_cast<int64_t>(bucket_mb * (1 << 20)); }
};

// The choices that FindFit makes, as flags: "--zero 2 --batch 4 --micro-batches 16", and
// "--recompute 'blocks.*'" if there is a pattern.
std::string ChoicesAsFlags(const PlanOptions& options);

// `options` holds the defaults and receives the flags.
void AddPlanFlags(FlagParser* flags, PlanOptions* options);

// Fills in what the preset and the number of ranks say. Errors: flags that exclude each other,
// sizes that do not divide, a file that cannot be written.
Status ResolvePlanOptions(const FlagParser& flags, PlanOptions* options);

}  // namespace zg::plan
