#include "framework/nn/graph_config.h"

#include <cmath>
#include <limits>

namespace zg {
namespace {

constexpr char kDistributedSplit[] = "distributed_split";

Status CheckZero(const ZeroConfig& zero) {
  if (zero.stage < 0 || zero.stage > 3) {
    return InvalidArgument("enable_zero: stage is {}, expected 0, 1, 2 or 3", zero.stage);
  }
  if (zero.bucket_bytes < 1) {
    return InvalidArgument("enable_zero: bucket_bytes is {}, expected at least 1",
                           zero.bucket_bytes);
  }
  if (zero.shard_min_elements < 0) {
    return InvalidArgument("enable_zero: shard_min_elements is {}, expected 0 or more",
                           zero.shard_min_elements);
  }
  return Status::Ok();
}

}  // namespace

void GraphConfig::enable_zero(const ZeroConfig& zero) {
  enabled_.reset();
  zero_ = zero;
}

void GraphConfig::enable_zero(bool mode, int stage, int64_t shard_min_size) {
  zero_.reset();
  enabled_ = Enabled{mode, stage, shard_min_size};
}

GraphConfig::Switches& GraphConfig::switches() {
  if (!switches_.has_value()) switches_.emplace();
  return *switches_;
}

void GraphConfig::set_zero_redundancy_optimizer_mode(const std::string& mode) {
  switches().mode = mode;
}

void GraphConfig::enable_use_compute_stream(bool enabled) {
  switches().use_compute_stream = enabled;
}

void GraphConfig::disable_group_boxing_by_dst_parallel(bool disabled) {
  switches().disable_group_boxing = disabled;
}

StatusOr<int> GraphConfig::StageOf(const Switches& switches) {
  if (!switches.mode.empty() && switches.mode != kDistributedSplit) {
    return InvalidArgument("set_zero_redundancy_optimizer_mode: got \"{}\", expected \"{}\"",
                           switches.mode, kDistributedSplit);
  }
  if (switches.mode.empty() && (switches.use_compute_stream || switches.disable_group_boxing)) {
    return InvalidArgument("{} needs set_zero_redundancy_optimizer_mode(\"{}\") as well",
                           switches.use_compute_stream
                               ? "enable_use_compute_stream(true), ZeRO stage 2,"
                               : "disable_group_boxing_by_dst_parallel(true), ZeRO stage 3,",
                           kDistributedSplit);
  }
  if (switches.disable_group_boxing && !switches.use_compute_stream) {
    return InvalidArgument(
        "disable_group_boxing_by_dst_parallel(true), ZeRO stage 3, needs "
        "enable_use_compute_stream(true) as well");
  }
  if (switches.mode.empty()) return 0;
  return switches.disable_group_boxing ? 3 : switches.use_compute_stream ? 2 : 1;
}

StatusOr<ZeroConfig> GraphConfig::ResolveZero(int num_ranks) const {
  ZeroConfig zero = zero_.value_or(ZeroConfig{});
  if (enabled_.has_value() && enabled_->mode) {
    if (enabled_->stage < 1 || enabled_->stage > 3) {
      return InvalidArgument("enable_zero(true, ...): stage is {}, expected 1, 2 or 3",
                             enabled_->stage);
    }
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    if (enabled_->shard_min_size < 0 || enabled_->shard_min_size > kMax / num_ranks) {
      return InvalidArgument(
          "enable_zero(true, ...): shard_min_size is {}, expected 0 or more, as the elements of "
          "one rank's shard",
          enabled_->shard_min_size);
    }
    zero.stage = enabled_->stage;
    zero.shard_min_elements = enabled_->shard_min_size * num_ranks;
  }
  ZG_RETURN_IF_ERROR(CheckZero(zero));
  if (!switches_.has_value()) return zero;
  ZG_ASSIGN_OR_RETURN(const int stage, StageOf(*switches_));
  const bool enable_zero_called = zero_.has_value() || enabled_.has_value();
  if (enable_zero_called && stage != zero.stage) {
    return InvalidArgument(
        "enable_zero asks for ZeRO stage {}, but set_zero_redundancy_optimizer_mode and its "
        "companions for stage {}; remove one of the two",
        zero.stage, stage);
  }
  zero.stage = stage;
  return zero;
}

Status GraphConfig::CheckUpdateEarly(int num_ranks, const ResolvedConfig& resolved) {
  if (resolved.micro_batches != num_ranks) {
    return InvalidArgument(
        "set_update_early: every rank computes {} micro-batches per step, and gradients are "
        "complete after the last only; use one per rank or updates at the step's end",
        resolved.micro_batches / num_ranks);
  }
  const char* other = nullptr;
  if (resolved.on_non_finite == OnNonFinite::kSkip) other = "set_on_non_finite(kSkip)";
  if (resolved.dtype == DType::kF16) other = "the loss scaling of f16";
  if (resolved.max_grad_norm > 0) other = "clip_gradients";
  if (other != nullptr) {
    return InvalidArgument(
        "set_update_early: {} needs all gradients before the first update; leave one of the two "
        "out",
        other);
  }
  return Status::Ok();
}

StatusOr<ResolvedConfig> GraphConfig::Resolve(int num_ranks) const {
  if (num_ranks < 1) return InvalidArgument("got {} ranks, expected at least 1", num_ranks);
  ResolvedConfig resolved;
  ZG_ASSIGN_OR_RETURN(resolved.zero, ResolveZero(num_ranks));
  if (!IsFloat(dtype_)) {
    return InvalidArgument("set_dtype: got {}, expected f32, bf16 or f16", DTypeName(dtype_));
  }
  resolved.dtype = dtype_;
  resolved.micro_batches = micro_batches_.value_or(num_ranks);
  if (resolved.micro_batches < 1) {
    return InvalidArgument("set_micro_batches: got {}, expected at least 1",
                           resolved.micro_batches);
  }
  if (resolved.micro_batches % num_ranks != 0) {
    return InvalidArgument(
        "set_micro_batches: {} micro-batches per step do not divide among {} ranks; use a multiple "
        "of {}, such as {}",
        resolved.micro_batches, num_ranks, num_ranks,
        (resolved.micro_batches / num_ranks + 1) * num_ranks);
  }
  resolved.reduce_every = reduce_every_;
  for (const std::string& modules : recompute_) {
    StatusOr<std::vector<ScopePattern>> patterns = ParseScopePatterns(modules);
    if (!patterns.ok()) return patterns.status().WithContext("recompute");
    resolved.recompute.insert(resolved.recompute.end(), patterns->begin(), patterns->end());
  }
  if (max_grad_norm_.has_value()) {
    if (!(*max_grad_norm_ > 0 && std::isfinite(*max_grad_norm_))) {
      return InvalidArgument("clip_gradients: max_norm is {}, expected a finite number > 0",
                             *max_grad_norm_);
    }
    resolved.max_grad_norm = *max_grad_norm_;
  }
  resolved.on_non_finite = on_non_finite_;
  if (update_early_) {
    ZG_RETURN_IF_ERROR(CheckUpdateEarly(num_ranks, resolved));
    resolved.update_early = true;
  }
  return resolved;
}

}  // namespace zg
