// ZeroConfig: what the user sets to shard a job, and OneFlow's three switches that resolve to the
// same thing.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"

namespace zg::zero {

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

Status Validate(const ZeroConfig& config);

// OneFlow's switches: the mode alone is stage 1, with the compute stream 2, without grouping by
// destination 3.
struct OneFlowSwitches {
  std::string zero_redundancy_optimizer_mode;  // "" or "distributed_split"
  bool use_compute_stream = false;
  bool disable_group_boxing_by_dst_parallel = false;
};

// Error: a switch without the ones before it, or another mode.
StatusOr<int> StageOf(const OneFlowSwitches& switches);

}  // namespace zg::zero
