// Random values of every micro-batch. An element is a function of (seed, step, micro-batch, stream,
// element index), like dropout's mask: recomputation draws the same value again, and it does not
// depend on the number of ranks.
#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

ir::OpDef Drawn(std::string name, std::string doc, std::vector<ir::AttributeDef> attributes) {
  const InputNames names = {"x"};
  ir::OpDef op;
  op.name = std::move(name);
  op.traits.is_random = true;
  op.traits.keeps_dtype = true;
  op.traits.stops_gradient = true;
  op.doc = std::move(doc);
  op.attributes = std::move(attributes);
  op.attributes.push_back({"stream", int64_t{0}, true});
  op.infer_shape = [names](const ir::OpCall& call) { return LikeInputs(call, names); };
  // As for dropout.
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures;
    if (call.inputs[0].shape.num_dims() > 0) signatures.push_back({{Sbp::S(0)}, {Sbp::S(0)}});
    return signatures;
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  op.not_differentiable = "what is drawn does not depend on x";
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterRandomOps(ir::OpRegistry& registry) {
  registry.Register(Drawn("uniform",
                          "y has the type of x and numbers from [low, high); nodes with different "
                          "`stream`s draw different ones.",
                          {{"low", 0.0}, {"high", 1.0}}));
  registry.Register(Drawn("normal",
                          "y has the type of x and numbers of a normal distribution; nodes with "
                          "different `stream`s draw different ones.",
                          {{"mean", 0.0}, {"stddev", 1.0}}));
}

}  // namespace zg
