#include "tools/all_passes.h"

#include "framework/nn/optimizers.h"
#include "framework/optim/append_update.h"
#include "framework/passes/register_passes.h"
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

namespace zg {
namespace {

PassDef AppendUpdate() {
  PassDef def;
  def.name = "append-update";
  def.doc =
      "Append the optimizer's update of every parameter; optimizer: sgd, adam, adamw, lamb, "
      "adafactor, or muon.";
  def.options = {
      {"optimizer", std::string("sgd")}, {"lr", 1e-3}, {"momentum", 0.0}, {"weight_decay", 0.0}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    const double lr = options.Float("lr");
    const double momentum = options.Float("momentum");
    const double weight_decay = options.Float("weight_decay");
    const std::string& name = options.String("optimizer");
    optim::Optimizer optimizer;
    if (name == "sgd") {
      optimizer = optim::Sgd{lr, momentum, weight_decay};
    } else if (name == "adam") {
      optim::Adam adam;
      adam.lr = lr;
      adam.weight_decay = weight_decay;
      optimizer = adam;
    } else if (name == "adamw") {
      optim::AdamW adamw;
      adamw.lr = lr;
      adamw.weight_decay = weight_decay;
      optimizer = adamw;
    } else if (name == "lamb") {
      optim::Lamb lamb;
      lamb.lr = lr;
      lamb.weight_decay = weight_decay;
      optimizer = lamb;
    } else if (name == "adafactor") {
      optim::Adafactor adafactor;
      adafactor.lr = lr;
      adafactor.weight_decay = weight_decay;
      optimizer = adafactor;
    } else if (name == "muon") {
      optim::Muon muon;
      muon.lr = muon.of_vectors.lr = lr;
      muon.weight_decay = muon.of_vectors.weight_decay = weight_decay;
      optimizer = muon;
    } else {
      return InvalidArgument(
          "got optimizer '{}', expected sgd, adam, adamw, lamb, adafactor or muon", name);
    }
    if (momentum != 0.0 && name != "sgd") {
      return InvalidArgument("got momentum {} for {}, expected sgd", momentum, name);
    }
    ZG_ASSIGN_OR_RETURN(optim::UpdateRules rules, optim::MakeUpdateRules(optimizer, {}));
    return std::unique_ptr<Pass>(std::make_unique<optim::AppendUpdate>(std::move(rules)));
  };
  return def;
}

PassDef Bucketing() {
  PassDef def;
  def.name = "bucketing";
  def.doc = "Lay parameters, gradients and optimizer state end to end in flat buckets.";
  const zero::BucketingOptions defaults;
  def.options = {{"bucket_bytes", defaults.bucket_bytes},
                 {"shard_min_elements", defaults.shard_min_elements},
                 {"partition", std::string(EnumName(defaults.partition))}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    zero::BucketingOptions bucketing;
    bucketing.bucket_bytes = options.Int("bucket_bytes");
    bucketing.shard_min_elements = options.Int("shard_min_elements");
    const auto partition = ParseEnum<Partition>(options.String("partition"));
    if (!partition) {
      return InvalidArgument("got partition '{}', expected even, greedy or balanced",
                             options.String("partition"));
    }
    bucketing.partition = *partition;
    return std::unique_ptr<Pass>(std::make_unique<zero::Bucketing>(bucketing));
  };
  return def;
}

PassDef BucketFrozen() {
  PassDef def;
  def.name = "bucket-frozen";
  def.doc = "Lay parameters that are not trained end to end in flat buckets.";
  const zero::BucketingOptions defaults;
  def.options = {{"bucket_bytes", defaults.bucket_bytes},
                 {"shard_min_elements", defaults.shard_min_elements}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    return std::unique_ptr<Pass>(std::make_unique<zero::BucketFrozen>(
        options.Int("bucket_bytes"), options.Int("shard_min_elements")));
  };
  return def;
}

PassDef ChooseStages() {
  PassDef def;
  def.name = "choose-stages";
  def.doc = "Up to which stage ZeRO shards each parameter: of all, then PATTERN=STAGE of some.";
  def.options = {{"stages", std::string("3")}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    ZG_ASSIGN_OR_RETURN(Stages stages, ParseStages(options.String("stages")));
    return std::unique_ptr<Pass>(std::make_unique<zero::ChooseStages>(std::move(stages)));
  };
  return def;
}

PassDef ShardParameters() {
  PassDef def;
  def.name = "shard-parameters";
  def.doc =
      "ZeRO stage 3: gather parameters only while in use; secondary_axis: backward gathers along it "
      "alone.";
  def.options = {{"secondary_axis", std::string()}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    return std::unique_ptr<Pass>(
        std::make_unique<zero::ShardParameters>(options.String("secondary_axis")));
  };
  return def;
}

PassDef AccumulateGradients() {
  PassDef def;
  def.name = "accumulate-gradients";
  def.doc = "Sum the gradients of a step's micro-batches; reduce_every: micro-batch or step.";
  def.options = {{"reduce_every", std::string("micro-batch")}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    const std::string& every = options.String("reduce_every");
    if (every != "micro-batch" && every != "step") {
      return InvalidArgument("got reduce_every '{}', expected micro-batch or step", every);
    }
    return std::unique_ptr<Pass>(std::make_unique<zero::AccumulateGradients>(
        zero::AccumulateGradientsOptions{every == "step"}));
  };
  return def;
}

PassDef ClipGradients() {
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
        std::make_unique<zero::ClipGradients>(max_norm, options.Bool("skip_non_finite")));
  };
  return def;
}

}  // namespace

void RegisterAllPasses(PassRegistry& registry) {
  RegisterPasses(registry);
  const auto add = [&](PassDef pass) { registry.Register(std::move(pass)); };
  add(AppendUpdate());
  add(ChooseStages());
  add(Bucketing());
  add(BucketFrozen());
  add(SimplePass<zero::EvalWeights>("Eval programs read the weights that the optimizer averages."));
  add(AccumulateGradients());
  add(SimplePass<zero::ShardOptimizerState>("ZeRO stage 1: each rank updates its part."));
  add(SimplePass<zero::ShardGradients>("ZeRO stage 2: reduce a gradient bucket once complete."));
  add(ShardParameters());
  add(ClipGradients());
  add(SimplePass<zero::TensorNorms>("Give updates the norms of whole tensors that they need."));
  add(SimplePass<zero::SumFactors>("Give updates the sums of rows and columns that they need."));
  add(SimplePass<zero::UpdateEarly>("Update a bucket as soon as its gradient is complete."));
}

}  // namespace zg
