// PlanOptions: what tools/plan is asked: a model and its sizes, how it is trained and on how many
// ranks, and the machine that times are estimated for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/job/flag_parser.h"
#include "framework/passes/compile_options.h"
#include "framework/plan/time_estimate.h"
#include "models/llama/presets.h"

namespace zg::plan {

// What a search may choose, which is what the command line leaves open.
struct FitChoices {
  bool mesh = true;
  bool stages = true;
  bool recompute = true;
};

struct PlanOptions {
  // The model. The sizes that it does not have are not looked at.
  std::string model = "gpt";        // gpt, llama, recipe or classifier
  std::string preset = "mini";      // of gpt's or llama's sizes
  int64_t layers = 0;               // gpt, recipe
  int64_t heads = 0;                // gpt
  int64_t channels = 0;             // gpt
  int64_t context = 0;              // gpt
  int64_t vocabulary = 0;           // gpt
  int64_t width = 0;                // recipe
  int64_t vocabulary_multiple = 1;  // gpt
  double dropout = 0.0;             // gpt
  models::LlamaConfig llama;        // llama

  // How it is trained.
  std::string optimizer = "adamw";  // gpt's: or muon, for its blocks
  int ranks = 1;
  int threads = 1;    // of each rank, which have scratch of their own
  int64_t batch = 8;  // samples per micro-batch
  CompileOptions compile;
  std::string placement_file;  // that compile.placement was read from; "": none

  std::string comm = "shared";  // how ranks talk: by shared memory or by messages

  Machine machine;
  std::string prices;  // the file that machine.prices was read from; "": none

  // Other questions than what the job needs.
  bool compare_stages = true;
  std::string explain;        // a value whose placement is explained instead; "": none
  std::string fit;            // bytes per rank, "8G"; "": not asked
  FitChoices fit_choices;     // what it may choose
  double num_parameters = 0;  // the paper's formulas for so many; 0: not asked

  // Files to write; "": none.
  std::string json;
  std::string html;
};

// What FindFit chooses, as flags: "--zero 2 --batch 4 --micro-batches 16", and where there are any
// the mesh, the file of placements, the secondary axis and "--recompute 'blocks.*'".
std::string ChoicesAsFlags(const PlanOptions& options);

// The command that runs the job.
std::string CommandOf(const PlanOptions& options);

// `options` holds the defaults and receives the flags.
void AddPlanFlags(FlagParser* flags, PlanOptions* options);

// Fills in what the preset and the number of ranks say. Errors: flags that exclude each other,
// sizes that do not divide, a file that cannot be written.
Status ResolvePlanOptions(const FlagParser& flags, PlanOptions* options);

}  // namespace zg::plan
