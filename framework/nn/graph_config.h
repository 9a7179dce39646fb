// GraphConfig: how a graph is trained. Setters only store; Resolve checks everything together.
//
//   graph.config().enable_zero({.stage = 2});
//   graph.config().set_micro_batches(16);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/status.h"

namespace zg::nn {

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

struct ResolvedConfig {
  ZeroConfig zero;
  int64_t micro_batches = 1;  // per step, over all ranks; a multiple of their number
  double max_grad_norm = 0;   // 0: gradients are not clipped
};

class GraphConfig {
 public:
  void enable_zero(const ZeroConfig& zero);

  // How many micro-batches a step consists of, over all ranks. Default: one per rank.
  void set_micro_batches(int64_t count) { micro_batches_ = count; }

  // Scales the gradients of a step so that the norm of all of them together is at most `max_norm`,
  // as torch.nn.utils.clip_grad_norm_ does.
  void clip_gradients(double max_norm) { max_grad_norm_ = max_norm; }

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
  // switches asking for different stages; micro-batches that ranks cannot share evenly.
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

  std::optional<ZeroConfig> zero_;    // at most one of
  std::optional<Enabled> enabled_;    // these two
  std::optional<Switches> switches_;  // once any of them is set
  std::optional<int64_t> micro_batches_;
  std::optional<double> max_grad_norm_;
};

}  // namespace zg::nn
