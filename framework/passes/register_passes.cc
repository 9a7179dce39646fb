#include "framework/passes/register_passes.h"

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

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
#include "framework/passes/overlap_communication.h"
#include "framework/passes/place_parameters.h"
#include "framework/passes/place_results.h"
#include "framework/passes/recompute.h"
#include "framework/passes/round_weights.h"
#include "framework/passes/scale_loss.h"
#include "framework/passes/schedule.h"

namespace zg {
namespace {

PassDef RecomputeDef() {
  PassDef def;
  def.name = "recompute";
  def.doc = "Compute activations of some modules again in backward; modules: patterns, by commas.";
  def.options = {{"modules", std::string(), true}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    ZG_ASSIGN_OR_RETURN(std::vector<ScopePattern> modules,
                        ParseScopePatterns(options.String("modules")));
    return std::unique_ptr<Pass>(std::make_unique<Recompute>(std::move(modules)));
  };
  return def;
}

// A pass of placement rules, given by its option `rules`, separated by semicolons.
template <typename P>
PassDef RulesPass(const char* name, const char* doc) {
  PassDef def;
  def.name = name;
  def.doc = doc;
  def.options = {{"rules", std::string()}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    std::string text = options.String("rules");
    std::replace(text.begin(), text.end(), ';', '\n');
    ZG_ASSIGN_OR_RETURN(std::vector<PlacementRule> rules, ParsePlacementRules(text));
    return std::unique_ptr<Pass>(std::make_unique<P>(std::move(rules)));
  };
  return def;
}

PassDef MixedPrecisionDef() {
  PassDef def;
  def.name = "mixed-precision";
  def.doc =
      "Let the model compute in 16 bits; dtype: bf16 or f16; f32_modules: patterns, by commas.";
  def.options = {{"dtype", DType::kBF16}, {"f32_modules", std::string()}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    const DType dtype = options.DType("dtype");
    if (dtype != DType::kBF16 && dtype != DType::kF16) {
      return InvalidArgument("got dtype '{}', expected bf16 or f16", DTypeName(dtype));
    }
    std::vector<ScopePattern> modules;
    if (const std::string& text = options.String("f32_modules"); !text.empty()) {
      ZG_ASSIGN_OR_RETURN(modules, ParseScopePatterns(text));
    }
    return std::unique_ptr<Pass>(std::make_unique<MixedPrecision>(dtype, std::move(modules)));
  };
  return def;
}

PassDef OverlapCommunicationDef() {
  PassDef def;
  def.name = "overlap-communication";
  def.doc = "Start collectives ahead of their readers; max_bytes: that this may keep alive.";
  def.options = {{"max_bytes", std::numeric_limits<int64_t>::max()}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    const int64_t max_bytes = options.Int("max_bytes");
    if (max_bytes < 0) {
      return InvalidArgument("got max_bytes {}, expected at least 1, or 0 for no overlap",
                             max_bytes);
    }
    return std::unique_ptr<Pass>(std::make_unique<OverlapCommunication>(max_bytes));
  };
  return def;
}

PassDef AccumulateResultsDef() {
  PassDef def;
  def.name = "accumulate-results";
  def.doc = "Take the means over a step's micro-batches of what it hands out and of buffers.";
  def.options = {{"keep_finite", false}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    return std::unique_ptr<Pass>(std::make_unique<AccumulateResults>(options.Bool("keep_finite")));
  };
  return def;
}

// Names, joined by commas.
std::set<std::string> Names(const std::string& text) {
  std::set<std::string> names;
  std::istringstream parts(text);
  for (std::string name; std::getline(parts, name, ',');) names.insert(name);
  return names;
}

PassDef MatchPhasesDef() {
  PassDef def;
  def.name = "match-phases";
  def.doc =
      "Give a phase's program what others have of its parameters; trained: those that have gradients, "
      "sixteen_bit: those that are read in the dtype alone; names, by commas.";
  def.options = {
      {"trained", std::string(), true}, {"sixteen_bit", std::string()}, {"dtype", DType::kBF16}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    return std::unique_ptr<Pass>(std::make_unique<MatchPhases>(
        NeedsOfPhases{Names(options.String("trained")), Names(options.String("sixteen_bit")),
                      options.DType("dtype")}));
  };
  return def;
}

PassDef DropIdleUpdatesDef() {
  PassDef def;
  def.name = "drop-idle-updates";
  def.doc =
      "Remove the updates of all parameter groups but the given ones, and what only they need.";
  def.options = {{"groups", std::vector<int64_t>(), true}};
  def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
    const std::vector<int64_t>& groups = options.Ints("groups");
    return std::unique_ptr<Pass>(
        std::make_unique<DropIdleUpdates>(std::set<int64_t>(groups.begin(), groups.end())));
  };
  return def;
}

}  // namespace

void RegisterPasses(PassRegistry& registry) {
  const auto add = [&](PassDef pass) { registry.Register(std::move(pass)); };
  add(AccumulateResultsDef());
  add(SimplePass<AverageEvalResults>("Make a loss of an eval section the mean over all ranks."));
  add(SimplePass<BuildBackward>("Append the gradient of the loss for every parameter."));
  add(SimplePass<DropGradientMarks>("Remove what tells backward about gradients."));
  add(DropIdleUpdatesDef());
  add(SimplePass<EliminateDeadNodes>("Remove what nobody reads."));
  add(SimplePass<FuseAdditions>("Make one node of an addition and what computes an operand."));
  add(SimplePass<FuseCopies>("Let updates compute the 16-bit copies of their parameters."));
  add(SimplePass<FuseElementwise>("Make one node of a chain of elementwise ops."));
  add(SimplePass<FuseGelu>("Make one node of a product and the gelu or gelu_grad behind it."));
  add(SimplePass<FuseLossGradient>("Make one node of a cross entropy and its gradient."));
  add(SimplePass<InferSbp>("Give every value a placement on every mesh axis."));
  add(SimplePass<InsertCollectives>("Make every change of placement a collective or a slice."));
  add(SimplePass<KeepCaches>("Give storage to what eval programs leave to later runs."));
  add(SimplePass<HoistInputs>("Compute once what follows from inputs that stay the same."));
  add(SimplePass<MasterWeights>("Keep 16-bit parameters, and f32 masters for the optimizer."));
  add(SimplePass<RoundWeights>("Keep the parameters that no update changes in 16 bits."));
  add(MatchPhasesDef());
  add(MixedPrecisionDef());
  add(OverlapCommunicationDef());
  add(RulesPass<PlaceParameters>(
      "place-parameters",
      "Split parameters along shared mesh axes; rules: 'PATTERN AXIS=S(dim)'."));
  add(RulesPass<PlaceResults>(
      "place-results",
      "Split what modules give along shared mesh axes; rules: 'PATTERN -> AXIS=S(dim)'."));
  add(RecomputeDef());
  add(SimplePass<ScaleLoss>("Begin backward with a dynamic loss scale, for f16."));
  add(SimplePass<Schedule>("Move inputs, views and gathers down to their first user."));
}

}  // namespace zg
