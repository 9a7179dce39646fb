#include "zero/pipeline.h"

#include "framework/optim/append_update.h"
#include "framework/passes/build_backward.h"
#include "framework/passes/eliminate_dead_nodes.h"
#include "framework/passes/fuse_elementwise.h"
#include "framework/passes/fuse_gelu.h"
#include "framework/passes/infer_sbp.h"
#include "framework/passes/insert_collectives.h"
#include "framework/passes/master_weights.h"
#include "framework/passes/mixed_precision.h"
#include "framework/passes/recompute.h"
#include "framework/passes/scale_loss.h"
#include "framework/passes/schedule.h"
#include "zero/accumulate_gradients.h"
#include "zero/clip_gradients.h"
#include "zero/shard_gradients.h"
#include "zero/shard_optimizer_state.h"
#include "zero/shard_parameters.h"
#include "zero/update_early.h"

namespace zg::zero {
namespace {

template <typename T, typename... Args>
void Add(std::vector<std::unique_ptr<Pass>>* passes, Args&&... args) {
  passes->push_back(std::make_unique<T>(std::forward<Args>(args)...));
}

}  // namespace

std::vector<std::unique_ptr<Pass>> MakePipeline(const PipelineOptions& options) {
  std::vector<std::unique_ptr<Pass>> passes;
  const bool is_mixed = options.dtype != DType::kF32;
  const bool is_scaled = options.dtype == DType::kF16;  // its gradients would vanish below 2^-24
  if (is_mixed) Add<MixedPrecision>(&passes, options.dtype);  // gradients follow the types
  if (options.train) {
    Add<BuildBackward>(&passes);
    if (is_scaled) Add<ScaleLoss>(&passes);
    Add<Recompute>(&passes, options.recompute);  // before bucketing: views serve copies as well
    Add<optim::AppendUpdate>(&passes, options.update);
    if (is_mixed) Add<MasterWeights>(&passes);
  }
  Add<EliminateDeadNodes>(&passes);  // before bucketing: a dead gradient is not packed
  if (options.train) Add<Bucketing>(&passes, options.bucketing);
  Add<InferSbp>(&passes);  // buckets have placements like any value
  if (options.train) {
    Add<AccumulateGradients>(&passes,
                             options.accumulation);  // before the stages: they move its nodes
    if (options.stage >= 1) Add<ShardOptimizerState>(&passes);
    if (options.stage >= 2) Add<ShardGradients>(&passes);  // each stage builds on the one before
    if (options.stage >= 3) Add<ShardParameters>(&passes);
    // Where gradients lie is settled, and how they get there is not.
    if (options.max_grad_norm > 0 || is_scaled || options.skip_non_finite) {
      Add<ClipGradients>(&passes, options.max_grad_norm, options.skip_non_finite);
    }
  }
  Add<InsertCollectives>(&passes);  // placements are final
  Add<FuseGelu>(&passes);           // before a chain takes the gelu
  Add<FuseElementwise>(&passes);    // chains do not grow across collectives
  if (options.train && options.update_early) Add<UpdateEarly>(&passes);
  Add<Schedule>(&passes);
  return passes;
}

}  // namespace zg::zero
