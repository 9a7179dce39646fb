// PlanOptions: the input of tools/plan: a model and its sizes, how it is trained and on how many
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

// The settings that a search may choose: those that the command line leaves open.
struct FitChoices {
  bool mesh = true;
  bool stages = true;
  bool recompute = true;
};

struct PlanOptions {
  // The model. Sizes that it does not have are ignored.
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
  std::string optimizer = "adamw";  // of gpt: adamw, or muon for its blocks
  int ranks = 1;
  int threads = 1;    // of each rank; each thread has scratch of its own
  int64_t batch = 8;  // samples per micro-batch
  CompileOptions compile;
  std::string placement_file;  // the file that compile.placement was read from; "": none

  std::string comm = "shared";  // how ranks communicate: by shared memory or by messages

  Machine machine;
  std::string prices;  // the file that machine.prices was read from; "": none

  // Questions other than the needs of the job.
  bool compare_stages = true;
  std::string explain;        // a value whose placement is explained instead; "": none
  std::string fit;            // bytes per rank, "8G"; "": no search
  int64_t fit_bytes = 0;      // the same, once resolved
  FitChoices fit_choices;     // settings that the search may choose
  double num_parameters = 0;  // the paper's formulas for so many parameters; 0: a model is planned

  // Files to write; "": none.
  std::string json;
  std::string html;
};

// The choices of FindFront as flags: "--zero 2 --batch 4 --micro-batches 16", and, if there are
// any, the mesh, the file of placements, the secondary axis and "--recompute 'blocks.*'".
std::string ChoicesAsFlags(const PlanOptions& options);

// The command that runs the job.
std::string CommandOf(const PlanOptions& options);

// `options` holds the defaults and receives the values.
void AddPlanFlags(FlagParser* flags, PlanOptions* options);

// Fills in the values of the preset and of the number of ranks. Errors: flags that exclude each
// other, sizes that do not divide, a file that cannot be written.
Status ResolvePlanOptions(const FlagParser& flags, PlanOptions* options);

}  // namespace zg::plan
