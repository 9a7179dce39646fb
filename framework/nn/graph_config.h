// GraphConfig: how a graph is trained. Setters only store; Resolve checks everything together.
//
//   graph.config().enable_zero({.stage = 2});
//   graph.config().set_micro_batches(16);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/scope_pattern.h"
#include "framework/tensor/dtype.h"

namespace zg {

struct ZeroConfig {
  // What every rank keeps only a shard of. 0: nothing. 1: optimizer state. 2: and gradients. 3: and
  // parameters (arXiv 1910.02054, section 5).
  int stage = 0;
  // Parameters are laid end to end in flat buckets of up to this size, the unit of every
  // collective. A larger parameter has a bucket of its own.
  int64_t bucket_bytes = int64_t{16} << 20;
  // A parameter with fewer elements stays whole on every rank.
  int64_t shard_min_elements = 0;
};

// When the gradients of a step's micro-batches are summed over the ranks. The two differ where a
// rank computes several micro-batches per step.
enum class ReduceEvery {
  // After every micro-batch, into an accumulator that lies split over the ranks. The sum is a left
  // fold over the micro-batches, so the bits do not depend on the number of ranks.
  kMicroBatch,
  // Once per step: every rank sums its own micro-batches in an accumulator of full size. Fewer
  // bytes are sent; the bits depend on the number of ranks, but not on the stage.
  kStep,
};

// What happens when a step's loss or gradients are infinite or NaN. Every rank does the same.
enum class OnNonFinite {
  kStop,    // the job ends with an error; parameters of this step are not updated
  kSkip,    // the update is left out, which costs a norm of all gradients; after 24 in a row, stop
  kIgnore,  // nothing is checked
};

struct ResolvedConfig {
  ZeroConfig zero;
  int64_t micro_batches = 1;  // per step, over all ranks; a multiple of their number
  DType dtype = DType::kF32;  // of what the model computes
  ReduceEvery reduce_every = ReduceEvery::kMicroBatch;
  std::vector<ScopePattern> recompute;
  double max_grad_norm = 0;  // 0: gradients are not clipped
  bool update_early = false;
  OnNonFinite on_non_finite = OnNonFinite::kStop;
};

class GraphConfig {
 public:
  void enable_zero(const ZeroConfig& zero);

  // How many micro-batches a step consists of, over all ranks. Default: one per rank.
  void set_micro_batches(int64_t count) { micro_batches_ = count; }

  // f32 (the default), or mixed precision with bf16 or f16: the model computes in 16 bits, losses,
  // statistics and sums over ranks are in f32, and the optimizer updates f32 masters.
  void set_dtype(DType dtype) { dtype_ = dtype; }

  // Activation checkpointing: what these modules compute in forward and need in backward is
  // computed again there, instead of being kept. "blocks.*" makes a segment of each block
  // (ir/scope_pattern.h); several patterns are joined by commas or given by several calls.
  void recompute(const std::string& modules) { recompute_.push_back(modules); }

  void set_reduce_every(ReduceEvery reduce_every) { reduce_every_ = reduce_every; }

  // Scales the gradients of a step so that the norm of all of them together is at most `max_norm`,
  // as torch.nn.utils.clip_grad_norm_ does.
  void clip_gradients(double max_norm) { max_grad_norm_ = max_norm; }

  // Updates a bucket of parameters as soon as its gradient is complete, so that gradients need not
  // all be alive together. Same bits. For one micro-batch per rank and step, and
  // neither clipping nor skipping nor f16, whose loss scaling looks at all gradients first.
  void set_update_early(bool enabled = true) { update_early_ = enabled; }

  // Default: stop. In f16 the loss scaler decides, under each of the three: it leaves such updates
  // out and lowers its scale.
  void set_on_non_finite(OnNonFinite on_non_finite) { on_non_finite_ = on_non_finite; }

  // OneFlow's form, with its meaning and defaults: stage 1 to 3 when `mode` is true, else 0; a
  // parameter stays whole when its shards would have fewer than `shard_min_size` elements.
  void enable_zero(bool mode = true, int stage = 2, int64_t shard_min_size = 1024);
  void enable_zero(int stage) = delete;  // write enable_zero({.stage = stage})

  // OneFlow's older switches: the mode "distributed_split" alone is stage 1; with the compute
  // stream 2; and without grouping by destination 3.
  void set_zero_redundancy_optimizer_mode(const std::string& mode);
  void enable_use_compute_stream(bool enabled = true);
  void disable_group_boxing_by_dst_parallel(bool disabled = true);

  // Errors: a value out of its range; a switch without those before it; enable_zero and the
  // switches asking for different stages; micro-batches that ranks cannot share evenly; a malformed
  // pattern of modules; early updates with what needs all gradients first.
  StatusOr<ResolvedConfig> Resolve(int num_ranks) const;

 private:
  struct Enabled {
    bool mode = true;
    int stage = 2;
    int64_t shard_min_size = 1024;
  };
  struct Switches {
    std::string mode;
    bool use_compute_stream = false;
    bool disable_group_boxing = false;
  };
  Switches& switches();

  static StatusOr<int> StageOf(const Switches& switches);
  StatusOr<ZeroConfig> ResolveZero(int num_ranks) const;
  static Status CheckUpdateEarly(int num_ranks, const ResolvedConfig& resolved);

  std::optional<ZeroConfig> zero_;    // at most one of
  std::optional<Enabled> enabled_;    // these two
  std::optional<Switches> switches_;  // once any of them is set
  std::optional<int64_t> micro_batches_;
  DType dtype_ = DType::kF32;
  ReduceEvery reduce_every_ = ReduceEvery::kMicroBatch;
  std::vector<std::string> recompute_;
  std::optional<double> max_grad_norm_;
  bool update_early_ = false;
  OnNonFinite on_non_finite_ = OnNonFinite::kStop;
};

}  // namespace zg
