// CompileOptions: the user's settings for the compiler, beside the model. One struct carries them
// from the graph's config and the command line to the passes: a new setting is a field here, a line
// in framework/job/compile_flags.cc, and the code that reads it.
//
//   graph.config().zero.stage = 2;
//   graph.config().zero.place("blocks.*", 3);
//   graph.config().micro_batches = 16;
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/enum_names.h"
#include "framework/base/status.h"
#include "framework/ir/mesh.h"
#include "framework/passes/oneflow_switches.h"
#include "framework/passes/placement_rule.h"
#include "framework/passes/stage_rule.h"
#include "framework/tensor/dtype.h"

namespace zg {

// Where a bucket is cut into the ranks' parts.
enum class Partition {
  kEven,      // anywhere, into equal parts; for updates of whole matrices (Muon) kBalanced
  kGreedy,    // between tensors, assigned as by partition_parameters of PyTorch's
              // ZeroRedundancyOptimizer: the largest first, each to the rank that has least
  kBalanced,  // between tensors, so that the ranks have about the same bytes and update flops
};
template <>
struct EnumNames<Partition> {
  static constexpr std::string_view kNames[] = {"even", "greedy", "balanced"};
};

struct ZeroOptions {
  // The states of which every rank keeps only a shard. 0: none. 1: optimizer state. 2: also
  // gradients. 3: also parameters (arXiv 1910.02054, section 5).
  int stage = 0;
  // Another stage for some parameters, by name, with their gradients and states: a parameter has
  // the stage of the one rule that names it, or `stage`. Same bits for every mixture.
  std::vector<StageRule> stage_rules = {};
  void place(std::string pattern, int stage_of_it) {
    stage_rules.push_back({std::move(pattern), stage_of_it});
  }
  // Parameters are laid end to end in flat buckets of up to this size, the unit of every
  // collective. A larger parameter has a bucket of its own.
  int64_t bucket_bytes = int64_t{16} << 20;
  // A parameter with fewer elements stays whole on every rank.
  int64_t shard_min_elements = 0;
  // A parameter whose shards would have fewer elements than this stays whole, too.
  int64_t min_elements_per_shard = 0;
  // All parts have the same length: imbalance becomes padding, which the plan shows.
  Partition partition = Partition::kEven;
  // Applies at stage 3, on a mesh of several axes that parameters are sharded over. From forward to
  // backward a rank keeps its part, along this axis, of the parameters that forward gathered, and
  // backward gathers along this axis alone, such as inside a host (hpZ, arXiv 2306.10209, section
  // 3.2). Empty: backward gathers as forward does.
  std::string secondary_axis = {};

  // Sets one stage for all parameters.
  void set_stage(int stage_of_all);
  // The highest stage of any parameter.
  int highest_stage() const;
  std::string stages_text() const { return StagesText(stage, stage_rules); }
};

// When the gradients of a step's micro-batches are summed over the ranks. The values differ only
// where a rank computes several micro-batches per step.
enum class ReduceEvery {
  // After every micro-batch, into an accumulator that is split over the ranks. The sum is a left
  // fold over the micro-batches, so the bits do not depend on the number of ranks.
  kMicroBatch,
  // Once per step: every rank sums its own micro-batches in a full-size accumulator. Fewer bytes
  // are sent; the bits depend on the number of ranks, but not on the stage.
  kStep,
};
template <>
struct EnumNames<ReduceEvery> {
  static constexpr std::string_view kNames[] = {"micro-batch", "step"};
};

// The reaction to a loss or gradient that is infinite or NaN. Every rank does the same.
enum class OnNonFinite {
  kStop,    // the job ends with an error; parameters of this step are not updated
  kSkip,    // the update is skipped, which requires the norm of all gradients; after 24 in a row,
            // stop
  kIgnore,  // nothing is checked
};
template <>
struct EnumNames<OnNonFinite> {
  static constexpr std::string_view kNames[] = {"stop", "skip", "ignore"};
};

struct CompileOptions : OneFlowSwitches {
  ZeroOptions zero;

  // The ranks as a grid of named axes (ir/mesh.h): {{"replica", 2}, {"shard", 4}} is hybrid
  // sharding; {"tensor", 2, 4} has fixed parts. Empty: all ranks along one axis, "data".
  std::vector<MeshAxis> mesh;

  // Placements of parameters and of modules' results along mesh axes whose ranks share
  // micro-batches, such as tensor; by name.
  std::vector<PlacementRule> placement;
  void place(std::string pattern, std::string axis, Sbp sbp) {
    placement.push_back({std::move(pattern), std::move(axis), sbp});
  }
  void place_results(std::string pattern, std::string axis, Sbp sbp) {
    placement.push_back({std::move(pattern), std::move(axis), sbp, PlacementRule::Of::kResults});
  }

  // Micro-batches of a step, over all ranks; a multiple of the number of ranks. 0: one per rank.
  int64_t micro_batches = 0;

  // f32, or mixed precision with bf16 or f16: the model computes in 16 bits; losses, statistics and
  // sums over ranks are in f32, and the optimizer updates f32 masters.
  DType dtype = DType::kF32;

  // In mixed precision these modules compute in f32, such as norms or a router: "**.norm"
  // (ir/scope_pattern.h); an item may hold several patterns, joined by commas. Their parameters are
  // kept, updated and sent in f32.
  std::vector<std::string> f32_modules;

  // In mixed precision, keeps parameters that are not trained in 16 bits, if the model reads them only
  // so: frozen ones take half the memory, with the same results. Where they are unfrozen later, training
  // continues from the rounded values. A graph that does not train always does this.
  bool round_frozen = false;

  ReduceEvery reduce_every = ReduceEvery::kMicroBatch;

  // Activation checkpointing: activations that these modules compute in forward and need in
  // backward are recomputed there instead of being kept. "blocks.*" makes a segment of each block
  // (ir/scope_pattern.h); an item may hold several patterns, joined by commas.
  std::vector<std::string> recompute;

  // Scales the gradients of a step so that their global norm is at most this, as
  // torch.nn.utils.clip_grad_norm_ does. 0: gradients are not clipped.
  double max_grad_norm = 0;

  // Updates a bucket of parameters as soon as its gradient is complete, so that not all gradients
  // need to be alive together. Same bits. Works only with one micro-batch per rank and step, and
  // without clipping, skipping and f16, whose loss scaling needs all gradients first.
  bool update_early = false;

  // Collectives run beside the computation, in a thread of their own, as long as the buffers that
  // this keeps alive at one time have at most so many bytes together. Same bits. 0: they run in
  // their place (passes/overlap_communication.h). kAuto: what measured prices say, if there are any
  // (zerograph/choose_overlap.h); else four buckets where messages are sent between hosts, which
  // takes time but little processor time, and 0 where ranks read each other's memory, and on devices.
  int64_t overlap_bytes = kAuto;
  void overlap_communication(int64_t max_bytes = kUnlimitedBytes) { overlap_bytes = max_bytes; }
  static constexpr int64_t kUnlimitedBytes = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kAuto = -1;

  // The most memory that a rank may be planned to use. A program that needs more is an error; with
  // overlap_bytes = kAuto it gets a schedule that needs no more, if there is one.
  int64_t max_memory_bytes = kUnlimitedBytes;

  // In f16 the loss scaler decides with each of the three: it skips such updates and lowers its
  // scale.
  OnNonFinite on_non_finite = OnNonFinite::kStop;

  // The setting with which all parameter groups have one count of updates, in which skipped ones do
  // not count; null: none has been made.
  const char* one_count_setting() const;

  std::string dump_directory;  // the IR is written here after every pass; empty: not written

  Mesh MeshOf(int num_ranks) const {
    return mesh.empty() ? Mesh::DataParallel(num_ranks) : Mesh(mesh);
  }

  void enable_zero(const ZeroOptions& options) { zero = options; }

  // OneFlow's function, with its meaning and defaults: stage 1 to 3 if `mode` is true, else 0; a
  // parameter stays whole if its shards would have fewer than `shard_min_size` elements.
  void enable_zero(bool mode = true, int stage = 2, int64_t shard_min_size = 1024);
  void enable_zero(int stage) = delete;  // write zero.stage = stage

  // The options with all fields filled in that depend on the number of data ranks, and with the
  // switches resolved to a stage. Errors: a value out of its range; switches that ask for another
  // stage than `zero`; micro-batches that ranks cannot share evenly; a malformed pattern of
  // modules; early updates combined with a setting that needs all gradients first.
  StatusOr<CompileOptions> Resolve(int num_data_ranks) const;
};

}  // namespace zg
