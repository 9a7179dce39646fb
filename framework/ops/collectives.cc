#include "framework/ops/collectives.h"

#include "framework/ir/op_registry.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

// The type of the value, or of the accumulator, which may be f32 for 16-bit terms.
StatusOr<Types> TypeOfResult(const ir::OpCall& call) {
  const TensorType& term = call.inputs[0];
  const TensorType& result = call.inputs.back();
  const bool widens = result.dtype == DType::kF32 && IsFloat(term.dtype);
  const bool accumulates = call.inputs.size() == 2;
  if (accumulates && SizeOf(result.dtype) == 2) {
    return InvalidArgument("{}: got an accumulator of type {}, expected f32", call.op->name,
                           result.ToString());
  }
  if (term.shape != result.shape || (term.dtype != result.dtype && !widens)) {
    return InvalidArgument("{}: got an accumulator of type {}, expected {}", call.op->name,
                           result.ToString(), term.ToString());
  }
  return Types{result};
}

Sbp SplitOf(const ir::OpCall& call, const char* attribute) {
  return Sbp::S(static_cast<int>(call.attributes.Int(attribute)));
}

// Every boxing op works along one mesh axis; every rank of the mesh runs it, in the same order.
ir::OpDef Boxing(std::string name, std::string doc) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.attributes = {{"axis", int64_t{0}}};
  op.infer_shape = TypeOfResult;
  return op;
}

ir::AliasRule Alias(ir::AliasRule::Kind kind, bool at_rank_slice) {
  ir::AliasRule rule;
  rule.kind = kind;
  rule.at_rank_slice = at_rank_slice;
  return rule;
}

// The accumulator is the second input, if there is one: the result is written over it.
std::vector<ir::AliasRule> IntoAccumulator() {
  ir::AliasRule rule = Alias(ir::AliasRule::Kind::kOutputInsideInput, false);
  rule.input = 1;
  return {rule};
}

ir::OpDef Place() {
  ir::OpDef op = Boxing(
      "place",
      "A request: the value with placement `sbp`. Insert-collectives turns it into boxing ops.");
  op.attributes = {{"sbp", std::string("{B}"), true}};
  op.not_differentiable = "placements are chosen after backward is built";
  return op;
}

ir::OpDef AllReduce() {
  ir::OpDef op =
      Boxing("all_reduce",
             "P -> B: every rank receives the sum of all ranks' terms, added in rank order, "
             "onto the accumulator "
             "(input 1, overwritten on the first micro-batch) if there is one.");
  op.max_inputs = 2;
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    if (call.inputs.size() == 2) return {{{Sbp::P(), Sbp::B()}, {Sbp::B()}}};
    return {{{Sbp::P()}, {Sbp::B()}}};
  };
  op.not_differentiable = "collectives are inserted after backward is built";
  op.aliases = [](const ir::OpCall& call) -> std::vector<ir::AliasRule> {
    if (call.inputs.size() == 2) return IntoAccumulator();
    return {Alias(ir::AliasRule::Kind::kInPlace, false)};
  };
  return op;
}

ir::OpDef ReduceScatter() {
  ir::OpDef op =
      Boxing("reduce_scatter",
             "P -> S(dim): rank r receives the r-th part of the sum, added in rank order, "
             "onto the accumulator "
             "(input 1, overwritten on the first micro-batch) if there is one. `in_place`: "
             "the part stays inside "
             "the input's memory.");
  op.max_inputs = 2;
  op.attributes.push_back({"dim", int64_t{0}});
  op.attributes.push_back({"in_place", false});
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    const Sbp split = SplitOf(call, "dim");
    if (call.inputs.size() == 2) return {{{Sbp::P(), split}, {split}}};
    return {{{Sbp::P()}, {split}}};
  };
  op.not_differentiable = "collectives are inserted after backward is built";
  op.aliases = [](const ir::OpCall& call) -> std::vector<ir::AliasRule> {
    if (call.inputs.size() == 2) return IntoAccumulator();
    if (call.attributes.Bool("in_place"))
      return {Alias(ir::AliasRule::Kind::kOutputInsideInput, true)};
    return {};
  };
  return op;
}

ir::OpDef AllGather() {
  ir::OpDef op = Boxing("all_gather", "S(dim) -> B: every rank receives all parts, in rank order.");
  op.attributes.push_back({"dim", int64_t{0}});
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    return {{{SplitOf(call, "dim")}, {Sbp::B()}}};
  };
  op.not_differentiable = "collectives are inserted after backward is built";
  op.aliases = [](const ir::OpCall& call) -> std::vector<ir::AliasRule> {
    if (call.attributes.Int("dim") != 0) return {};
    return {Alias(ir::AliasRule::Kind::kInputInsideOutput, true)};
  };
  return op;
}

ir::OpDef AllToAll() {
  ir::OpDef op = Boxing(
      "all_to_all", "S(from) -> S(to): every rank sends each other rank the part that it needs.");
  op.attributes.push_back({"from", int64_t{0}, true});
  op.attributes.push_back({"to", int64_t{0}, true});
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    return {{{SplitOf(call, "from")}, {SplitOf(call, "to")}}};
  };
  op.not_differentiable = "collectives are inserted after backward is built";
  return op;
}

ir::OpDef LocalSlice() {
  ir::OpDef op =
      Boxing("local_slice", "B -> S(dim): every rank keeps its own part; nothing is sent.");
  op.attributes.push_back({"dim", int64_t{0}});
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    return {{{Sbp::B()}, {SplitOf(call, "dim")}}};
  };
  op.not_differentiable = "placements are chosen after backward is built";
  op.aliases = [](const ir::OpCall& call) -> std::vector<ir::AliasRule> {
    if (call.attributes.Int("dim") != 0) return {};
    return {Alias(ir::AliasRule::Kind::kOutputInsideInput, true)};
  };
  return op;
}

ir::OpDef LocalTerm() {
  ir::OpDef op =
      Boxing("local_term",
             "B -> P (dim = -1): rank 0 keeps the value, the others hold zeros. S(dim) -> "
             "P: every rank pads its "
             "part with zeros. Nothing is sent.");
  op.attributes.push_back({"dim", int64_t{-1}});
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    const Sbp from = call.attributes.Int("dim") < 0 ? Sbp::B() : SplitOf(call, "dim");
    return {{{from}, {Sbp::P()}}};
  };
  op.not_differentiable = "placements are chosen after backward is built";
  return op;
}

}  // namespace

void RegisterCollectiveOps(ir::OpRegistry& registry) {
  registry.Register(Place());
  registry.Register(AllReduce());
  registry.Register(ReduceScatter());
  registry.Register(AllGather());
  registry.Register(AllToAll());
  registry.Register(LocalSlice());
  registry.Register(LocalTerm());
}

}  // namespace zg
