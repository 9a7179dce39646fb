#include "framework/passes/compile_options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/ir/scope_pattern.h"
#include "framework/passes/zero_stage.h"

namespace zg {
namespace {

constexpr int64_t kMaxMicroBatches = int64_t{1} << 24;  // each has its part of some results

Status CheckZero(const ZeroOptions& zero, int num_data_ranks) {
  if (zero.stage < 0 || zero.stage > 3) {
    return InvalidArgument("zero.stage: got {}, expected 0, 1, 2 or 3", zero.stage);
  }
  for (const StageRule& rule : zero.stage_rules) {
    ZG_RETURN_IF_ERROR(CheckStageRule(rule).WithContext("zero.place"));
  }
  if (!zero.secondary_axis.empty() && zero.highest_stage() < kLastStage) {
    return InvalidArgument(
        "zero.secondary_axis: got {}, but stage {} keeps parameters whole, and nothing is gathered; "
        "use it with stage 3",
        zero.secondary_axis, zero.stages_text());
  }
  if (zero.bucket_bytes < 1) {
    return InvalidArgument("zero.bucket_bytes: got {}, expected at least 1", zero.bucket_bytes);
  }
  if (zero.shard_min_elements < 0) {
    return InvalidArgument("zero.shard_min_elements: got {}, expected 0 or more",
                           zero.shard_min_elements);
  }
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (zero.min_elements_per_shard < 0 || zero.min_elements_per_shard > kMax / num_data_ranks) {
    return InvalidArgument(
        "zero.min_elements_per_shard: got {}, expected 0 or more, as the elements of one rank's "
        "shard",
        zero.min_elements_per_shard);
  }
  return Status::Ok();
}

StatusOr<ZeroOptions> ResolveZero(const CompileOptions& options, int num_data_ranks) {
  ZeroOptions zero = options.zero;
  ZG_RETURN_IF_ERROR(CheckZero(zero, num_data_ranks));
  zero.shard_min_elements =
      std::max(zero.shard_min_elements, zero.min_elements_per_shard * num_data_ranks);
  zero.min_elements_per_shard = 0;
  ZG_ASSIGN_OR_RETURN(const std::optional<int> switched, options.Stage());
  if (!switched.has_value() || *switched == zero.stage) return zero;
  if (zero.stage != 0) {
    return InvalidArgument(
        "zero.stage is {}, but set_zero_redundancy_optimizer_mode and its companions ask for stage "
        "{}; remove one of the two",
        zero.stage, *switched);
  }
  zero.stage = *switched;
  return zero;
}

Status CheckUpdateEarly(const CompileOptions& options, int num_data_ranks) {
  if (options.micro_batches != num_data_ranks) {
    return InvalidArgument(
        "update_early: every rank computes {} micro-batches per step, and gradients are complete "
        "after the last only; use one per rank or updates at the step's end",
        options.micro_batches / num_data_ranks);
  }
  const char* other = nullptr;
  if (options.on_non_finite == OnNonFinite::kSkip) other = "on_non_finite = kSkip";
  if (options.dtype == DType::kF16) other = "the loss scaling of f16";
  if (options.max_grad_norm > 0) other = "max_grad_norm";
  if (other == nullptr) return Status::Ok();
  return InvalidArgument(
      "update_early: {} needs all gradients before the first update; leave one of the two out",
      other);
}

}  // namespace

void ZeroOptions::set_stage(int stage_of_all) {
  stage = stage_of_all;
  stage_rules.clear();
  if (stage < kLastStage) secondary_axis.clear();
}

int ZeroOptions::highest_stage() const {
  int highest = stage;
  for (const StageRule& rule : stage_rules) highest = std::max(highest, rule.stage);
  return highest;
}

void CompileOptions::enable_zero(bool mode, int stage, int64_t shard_min_size) {
  zero = ZeroOptions();
  if (!mode) return;
  zero.stage = stage;
  zero.min_elements_per_shard = shard_min_size;
}

const char* CompileOptions::one_count_setting() const {
  if (dtype == DType::kF16) return "dtype f16";
  return on_non_finite == OnNonFinite::kSkip ? "`on_non_finite` skip" : nullptr;
}

StatusOr<CompileOptions> CompileOptions::Resolve(int num_data_ranks) const {
  if (num_data_ranks < 1) {
    return InvalidArgument("got {} ranks, expected at least 1", num_data_ranks);
  }
  CompileOptions resolved = *this;
  static_cast<OneFlowSwitches&>(resolved) = OneFlowSwitches();
  ZG_ASSIGN_OR_RETURN(resolved.zero, ResolveZero(*this, num_data_ranks));
  if (!IsFloat(dtype)) {
    return InvalidArgument("dtype: got {}, expected f32, bf16 or f16", DTypeName(dtype));
  }
  if (round_frozen && dtype == DType::kF32) {
    return InvalidArgument(
        "round_frozen: the graph computes in f32, so that there is nothing to round parameters to; "
        "set dtype to bf16 or f16");
  }
  if (micro_batches > kMaxMicroBatches) {
    return InvalidArgument("micro_batches: got {}, expected at most {}", micro_batches,
                           kMaxMicroBatches);
  }
  if (micro_batches == 0) resolved.micro_batches = num_data_ranks;
  if (resolved.micro_batches < 1) {
    return InvalidArgument("micro_batches: got {}, expected at least 1, or 0 for one per rank",
                           micro_batches);
  }
  if (resolved.micro_batches % num_data_ranks != 0) {
    return InvalidArgument(
        "micro_batches: {} micro-batches per step do not divide among {} ranks; use a multiple of "
        "{}, such as {}",
        micro_batches, num_data_ranks, num_data_ranks,
        (micro_batches / num_data_ranks + 1) * num_data_ranks);
  }
  for (const std::string& modules : recompute) {
    ZG_RETURN_IF_ERROR(ParseScopePatterns(modules).status().WithContext("recompute"));
  }
  for (const std::string& modules : f32_modules) {
    ZG_RETURN_IF_ERROR(ParseScopePatterns(modules).status().WithContext("f32_modules"));
  }
  if (!(max_grad_norm >= 0 && std::isfinite(max_grad_norm))) {
    return InvalidArgument("max_grad_norm: got {}, expected a finite number > 0, or 0 for no limit",
                           max_grad_norm);
  }
  if (overlap_bytes == kAuto) {
    resolved.overlap_bytes = 0;
  } else if (overlap_bytes < 0) {
    return InvalidArgument("overlap_bytes: got {}, expected at least 1, or 0 for no overlap",
                           overlap_bytes);
  }
  if (max_memory_bytes < 1) {
    return InvalidArgument("max_memory_bytes: got {}, expected at least 1", max_memory_bytes);
  }
  if (update_early) ZG_RETURN_IF_ERROR(CheckUpdateEarly(resolved, num_data_ranks));
  return resolved;
}

}  // namespace zg
