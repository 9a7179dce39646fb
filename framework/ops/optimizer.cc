// The optimizers' update rules that have kernels of their own, as PyTorch defines them: one node
// updates one parameter p (or one shard of a bucket) and its state in place. The learning rate is
// `lr` times the schedule's factor for the step. elementwise_update has all other rules.
//
// An optional last input, control f32[2] (op update_control), holds a factor on the gradient, which
// is applied before anything else, and the number of the update for Adam's bias correction. A
// factor of exactly 0 leaves parameter and state as they are.
#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/parameter_copy.h"
#include "framework/ops/update_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

// An update with this many states, and further attributes in [0, end).
struct Limit {
  const char* name;
  double end;
};

ir::OpDef Update(std::string name, std::string doc, int num_states, std::vector<Limit> limits,
                 int64_t flops_per_element, bool counts = false) {
  ir::OpDef op = UpdateOp(std::move(name), std::move(doc), counts);
  op.min_inputs = 2 + num_states;
  op.max_inputs = op.min_inputs + 1;
  op.num_outputs = 1 + num_states;
  for (const Limit& limit : limits) op.attributes.push_back({limit.name, 0.0, true});
  op.infer_shape = [limits, num_states](const ir::OpCall& call) -> StatusOr<Types> {
    for (const Limit& limit : limits) {
      ZG_RETURN_IF_ERROR(CheckRange(call, limit.name, limit.end));
    }
    return UpdateTypes(call, num_states);
  };
  op.flops = [flops_per_element](const ir::OpCall& call) {
    return flops_per_element * call.inputs[0].shape.num_elements();
  };
  return op;
}

ir::OpDef SgdUpdate() { return Update("sgd_update", "p -= lr (g + weight_decay p).", 0, {}, 4); }

ir::OpDef SgdMomentumUpdate() {
  ir::OpDef op =
      Update("sgd_momentum_update",
             "h = g + weight_decay p; m = momentum m + h; p -= lr m, or lr (h + momentum m) "
             "with `nesterov`. m starts as zeros.",
             1, {{"momentum", std::numeric_limits<double>::infinity()}}, 6);
  op.attributes.push_back({"nesterov", false});
  return op;
}

ir::OpDef AdamUpdate() {
  ir::OpDef op = Update(
      "adam_update",
      "Adam (arXiv 1412.6980, algorithm 1) at step t: m = beta1 m + (1 - beta1) g; v = beta2 v + "
      "(1 - beta2) g^2; p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon). Before "
      "that, weight_decay p is added to g, or with `decoupled` lr weight_decay p is taken from p.",
      2, {{"beta1", 1.0}, {"beta2", 1.0}, {"epsilon", std::numeric_limits<double>::infinity()}}, 14,
      /*counts=*/true);
  op.attributes.push_back({"decoupled", false, true});
  return op;
}

}  // namespace

void RegisterOptimizerOps(ir::OpRegistry& registry) {
  registry.Register(WithCopy(SgdUpdate()));
  registry.Register(WithCopy(SgdMomentumUpdate()));
  registry.Register(WithCopy(AdamUpdate()));
}

}  // namespace zg
