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
  bool update_early = false;
};

class GraphConfig {
 public:
  void enable_zero(const ZeroConfig& zero);

  // How many micro-batches a step consists of, over all ranks. Default: one per rank.
  void set_micro_batches(int64_t count) { micro_batches_ = count; }

  // Updates a bucket of parameters as soon as its gradient is complete, so that gradients need not
  // all be alive together. Same bits. For one micro-batch per rank and step.
  void set_update_early(bool enabled = true) { update_early_ = enabled; }

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
  // switches asking for different stages; micro-batches that ranks cannot share evenly; early
  // updates with several micro-batches per rank.
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
  bool update_early_ = false;
};

}  // namespace zg::nn
