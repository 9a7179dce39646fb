#include "zero/pipeline.h"

#include "framework/optim/append_update.h"
#include "framework/passes/accumulate_results.h"
#include "framework/passes/average_eval_results.h"
#include "framework/passes/build_backward.h"
#include "framework/passes/drop_gradient_marks.h"
#include "framework/passes/drop_idle_updates.h"
#include "framework/passes/eliminate_dead_nodes.h"
#include "framework/passes/fuse_additions.h"
#include "framework/passes/fuse_copies.h"
#include "framework/passes/fuse_elementwise.h"
#include "framework/passes/fuse_gelu.h"
#include "framework/passes/fuse_loss_gradient.h"
#include "framework/passes/hoist_inputs.h"
#include "framework/passes/infer_sbp.h"
#include "framework/passes/insert_collectives.h"
#include "framework/passes/keep_caches.h"
#include "framework/passes/master_weights.h"
#include "framework/passes/match_phases.h"
#include "framework/passes/mixed_precision.h"
#include "framework/passes/module_patterns.h"
#include "framework/passes/overlap_communication.h"
#include "framework/passes/place_parameters.h"
#include "framework/passes/place_results.h"
#include "framework/passes/recompute.h"
#include "framework/passes/round_weights.h"
#include "framework/passes/scale_loss.h"
#include "framework/passes/schedule.h"
#include "framework/passes/zero_stage.h"
#include "zero/accumulate_gradients.h"
#include "zero/bucket_frozen.h"
#include "zero/choose_stages.h"
#include "zero/clip_gradients.h"
#include "zero/eval_weights.h"
#include "zero/shard_gradients.h"
#include "zero/shard_optimizer_state.h"
#include "zero/shard_parameters.h"
#include "zero/sum_factors.h"
#include "zero/tensor_norms.h"
#include "zero/update_early.h"

namespace zg::zero {
namespace {

template <typename T, typename... Args>
void Add(std::vector<std::unique_ptr<Pass>>* passes, Args&&... args) {
  passes->push_back(std::make_unique<T>(std::forward<Args>(args)...));
}

}  // namespace

std::vector<std::unique_ptr<Pass>> MakePipeline(const CompileOptions& options,
                                                const std::optional<optim::UpdateRules>& update,
                                                BucketOrder order, const PhaseOptions* phase) {
  std::vector<std::unique_ptr<Pass>> passes;
  const int stage = options.zero.highest_stage();
  const bool is_mixed = options.dtype != DType::kF32;
  const bool is_scaled = options.dtype == DType::kF16;  // its gradients would vanish below 2^-24
  const bool skips = options.on_non_finite == OnNonFinite::kSkip;
  Add<AverageEvalResults>(&passes);  // before types change: a loss is f32
  if (is_mixed) {                    // gradients follow the types
    Add<MixedPrecision>(&passes, options.dtype, PatternsOf(options.f32_modules));
  }
  Add<KeepCaches>(&passes);   // with the final types of the rows
  Add<HoistInputs>(&passes);  // likewise, with caches of its own
  if (update.has_value()) Add<BuildBackward>(&passes);
  if (phase != nullptr) Add<MatchPhases>(&passes, phase->needs);
  Add<DropGradientMarks>(&passes);  // backward is built
  if (update.has_value()) {
    Add<AccumulateResults>(&passes, /*keep_finite=*/is_scaled || skips);
    if (is_scaled) Add<ScaleLoss>(&passes);
  }
  Add<PlaceResults>(&passes, options.placement);  // before recompute, which copies the added nodes
  if (update.has_value()) {
    Add<Recompute>(&passes,
                   PatternsOf(options.recompute));  // before bucketing: views serve copies too
    Add<optim::AppendUpdate>(&passes, *update);
    if (is_mixed) Add<MasterWeights>(&passes);
  }
  if (is_mixed && (!update.has_value() || options.round_frozen)) Add<RoundWeights>(&passes);
  Add<EliminateDeadNodes>(&passes);  // before bucketing: a dead gradient is not packed
  Add<PlaceParameters>(&passes,
                       options.placement);  // before bucketing: parameters with the same split are
                                            // packed together
  Add<ChooseStages>(&passes, Stages{options.zero.stage, options.zero.stage_rules});
  if (update.has_value()) {
    Add<Bucketing>(&passes,
                   BucketingOptions{options.zero.bucket_bytes, options.zero.shard_min_elements,
                                    options.zero.partition, order});
  }
  Add<EvalWeights>(&passes);  // states exist, and placements do not
  Add<BucketFrozen>(&passes, options.zero.bucket_bytes, options.zero.shard_min_elements,
                    phase != nullptr ? phase->needs : NeedsOfPhases());
  Add<InferSbp>(&passes);  // buckets have placements like any value
  const auto shards = [&](Role role) { return stage >= FirstStageThatShards(role); };
  if (update.has_value()) {
    // Before the stages: they move its nodes.
    Add<AccumulateGradients>(
        &passes, AccumulateGradientsOptions{options.reduce_every == ReduceEvery::kStep});
    if (shards(Role::kOptimizerState)) Add<ShardOptimizerState>(&passes);
    if (shards(Role::kGradient)) Add<ShardGradients>(&passes);  // builds on the stage before
  }
  if (shards(Role::kParameter)) Add<ShardParameters>(&passes, options.zero.secondary_axis);
  if (phase != nullptr) {
    Add<DropIdleUpdates>(&passes, phase->groups);  // variables have their places; before norms and
                                                   // transfers
  }
  if (update.has_value()) {
    // Gradients have their placement, but the collectives for it do not exist yet.
    Add<ClipGradients>(&passes, options.max_grad_norm, skips);
    Add<TensorNorms>(&passes);  // over the updates' inputs, including the control
    Add<SumFactors>(&passes);   // likewise
  }
  Add<InsertCollectives>(&passes);                         // placements are final
  Add<FuseGelu>(&passes);                                  // before a chain takes the gelu
  Add<FuseAdditions>(&passes);                             // likewise the additions
  if (update.has_value()) Add<FuseLossGradient>(&passes);  // likewise factors of the loss
  Add<FuseElementwise>(&passes);                           // chains do not grow across collectives
  if (update.has_value() && is_mixed) Add<FuseCopies>(&passes);  // before updates move
  if (update.has_value() && options.update_early) Add<UpdateEarly>(&passes);
  Add<Schedule>(&passes);
  if (options.overlap_bytes > 0) Add<OverlapCommunication>(&passes, options.overlap_bytes);
  return passes;
}

}  // namespace zg::zero
