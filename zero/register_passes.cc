#include "zero/register_passes.h"

#include <memory>
#include <string>
#include <utility>

#include "framework/passes/compile_options.h"
#include "framework/passes/stage_rule.h"
#include "zero/accumulate_gradients.h"
#include "zero/bucket_frozen.h"
#include "zero/bucketing.h"
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

PassDef BucketingDef() {
  PassDef def;
  def.name = "bucketing";
  def.doc = "Lay parameters, gradients and optimizer state end to end in flat buckets.";
  const BucketingOptions defaults;
  def.options = {{"bucket_bytes", defaults.bucket_bytes},
                 {"shard_min_elements", defaults.shard_min_elements},
                 {"partition", std::string(EnumName(defaults.partition))}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    BucketingOptions bucketing;
    bucketing.bucket_bytes = options.Int("bucket_bytes");
    bucketing.shard_min_elements = options.Int("shard_min_elements");
    const auto partition = ParseEnum<Partition>(options.String("partition"));
    if (!partition) {
      return InvalidArgument("got partition '{}', expected even, greedy or balanced",
                             options.String("partition"));
    }
    bucketing.partition = *partition;
    return std::unique_ptr<Pass>(std::make_unique<Bucketing>(bucketing));
  };
  return def;
}

PassDef BucketFrozenDef() {
  PassDef def;
  def.name = "bucket-frozen";
  def.doc = "Lay parameters that are not trained end to end in flat buckets.";
  const BucketingOptions defaults;
  def.options = {{"bucket_bytes", defaults.bucket_bytes},
                 {"shard_min_elements", defaults.shard_min_elements}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    return std::unique_ptr<Pass>(std::make_unique<BucketFrozen>(options.Int("bucket_bytes"),
                                                                options.Int("shard_min_elements")));
  };
  return def;
}

PassDef ChooseStagesDef() {
  PassDef def;
  def.name = "choose-stages";
  def.doc = "Up to which stage ZeRO shards each parameter: of all, then PATTERN=STAGE of some.";
  def.options = {{"stages", std::string("3")}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    ZG_ASSIGN_OR_RETURN(Stages stages, ParseStages(options.String("stages")));
    return std::unique_ptr<Pass>(std::make_unique<ChooseStages>(std::move(stages)));
  };
  return def;
}

PassDef ShardParametersDef() {
  PassDef def;
  def.name = "shard-parameters";
  def.doc =
      "ZeRO stage 3: gather parameters only while in use; secondary_axis: backward gathers along it "
      "alone.";
  def.options = {{"secondary_axis", std::string()}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    return std::unique_ptr<Pass>(
        std::make_unique<ShardParameters>(options.String("secondary_axis")));
  };
  return def;
}

PassDef AccumulateGradientsDef() {
  PassDef def;
  def.name = "accumulate-gradients";
  def.doc = "Sum the gradients of a step's micro-batches; reduce_every: micro-batch or step.";
  def.options = {{"reduce_every", std::string("micro-batch")}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    const std::string& every = options.String("reduce_every");
    if (every != "micro-batch" && every != "step") {
      return InvalidArgument("got reduce_every '{}', expected micro-batch or step", every);
    }
    return std::unique_ptr<Pass>(
        std::make_unique<AccumulateGradients>(AccumulateGradientsOptions{every == "step"}));
  };
  return def;
}

PassDef ClipGradientsDef() {
  PassDef def;
  def.name = "clip-gradients";
  def.doc =
      "Scale gradients so that their global norm is at most max_norm (0: any), and divide them by the "
      "weight of the loss; skip_non_finite: leave out updates that are not finite.";
  def.options = {{"max_norm", 1.0}, {"skip_non_finite", false}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    const double max_norm = options.Float("max_norm");
    if (!(max_norm >= 0)) {
      return InvalidArgument("got max_norm {}, expected max_norm >= 0", max_norm);
    }
    return std::unique_ptr<Pass>(
        std::make_unique<ClipGradients>(max_norm, options.Bool("skip_non_finite")));
  };
  return def;
}

}  // namespace

void RegisterPasses(PassRegistry& registry) {
  const auto add = [&](PassDef pass) { registry.Register(std::move(pass)); };
  add(ChooseStagesDef());
  add(BucketingDef());
  add(BucketFrozenDef());
  add(SimplePass<EvalWeights>("Eval programs read the weights that the optimizer averages."));
  add(AccumulateGradientsDef());
  add(SimplePass<ShardOptimizerState>("ZeRO stage 1: each rank updates its part."));
  add(SimplePass<ShardGradients>("ZeRO stage 2: reduce a gradient bucket once complete."));
  add(ShardParametersDef());
  add(ClipGradientsDef());
  add(SimplePass<TensorNorms>("Give updates the norms of whole tensors that they need."));
  add(SimplePass<SumFactors>("Give updates the sums of rows and columns that they need."));
  add(SimplePass<UpdateEarly>("Update a bucket as soon as its gradient is complete."));
}

}  // namespace zg::zero
