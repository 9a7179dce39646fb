// The boxing ops: changes of placement along one mesh axis. The logical value stays the same; only
// its placement on the ranks changes. insert-collectives makes them; the table is in
// framework/passes/boxing.h. Ops that move data may only start the transfer (`start`,
// overlap-communication); `wait` ends it.
#include "framework/ir/builder.h"
#include "framework/ir/op_registry.h"
#include "framework/ops/op_names.h"

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

// The result of a sum over ranks.
StatusOr<Types> TypeOfSum(const ir::OpCall& call) {
  if (call.inputs[0].dtype == DType::kBool) {
    return InvalidArgument("{}: got terms of type {}, expected numbers; convert with to(x, dtype)",
                           call.op->name, call.inputs[0].ToString());
  }
  return TypeOfResult(call);
}

Sbp SplitOf(const ir::OpCall& call, const char* attribute) {
  return Sbp::S(static_cast<int>(call.attributes.Int(attribute)));
}

// Every boxing op works along one mesh axis, and sums also along several; every rank of the mesh
// runs it, in the same order.
ir::OpDef Boxing(std::string name, std::string doc) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.traits.kind = ir::OpKind::kBoxing;
  op.attributes = {{"axis", int64_t{0}}, {"start", false}};
  op.infer_shape = TypeOfResult;
  return op;
}

// A rank's part of the value; rank 0 has the largest part.
int64_t LargestPart(const ir::OpCall& call, int num_ranks) {
  return (call.inputs[0].shape.num_elements() + num_ranks - 1) / num_ranks;
}

// Each rank sends the terms of every other rank's part of a sum.
int64_t TermsSent(const ir::OpCall& call, int num_ranks) {
  return LargestPart(call, num_ranks) * (num_ranks - 1) * SizeOf(call.inputs[0].dtype);
}

// The parts of the other ranks reach rank 0.
int64_t ResultsSent(const ir::OpCall& call, int num_ranks) {
  const int64_t others = call.inputs[0].shape.num_elements() - LargestPart(call, num_ranks);
  return others * SizeOf(call.inputs.back().dtype);
}

ir::AliasRule Alias(ir::AliasRule::Kind kind, bool at_rank_slice) {
  ir::AliasRule rule;
  rule.kind = kind;
  rule.at_rank_slice = at_rank_slice;
  return rule;
}

// Whether a rank's part of a value, in its local types, is a range of its elements.
bool PartsFollowEachOther(const ir::OpCall& call) {
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  return IsFirstLongDim(call.inputs[0].shape, dim);
}

// The accumulator is the second input, if there is one: the result is written over it.
std::vector<ir::AliasRule> IntoAccumulator() {
  ir::AliasRule rule = Alias(ir::AliasRule::Kind::kOutputInsideInput, false);
  rule.input = 1;
  return {rule};
}

// Several mesh axes in ascending order; a sum over them is one fold in rank order, instead of a sum
// over the one in `axis`. The result of a reduce_scatter is B along some of them, and split along
// at least one.
ir::AttributeDef SummedAxes() { return {"axes", std::vector<int64_t>{}}; }

ir::OpDef Place() {
  ir::OpDef op = Boxing(
      "place",
      "A request: the value with placement `sbp`; or where `axis` names a mesh axis, with that along it "
      "and its own along the others, which infer-sbp fills in. Insert-collectives turns it into boxing "
      "ops. `copy`: a part of it has memory of its own.");
  op.traits.kind = ir::OpKind::kPlace;
  op.attributes = {{"sbp", NdSbp{Sbp::B()}, true}, {"axis", std::string()}, {"copy", false}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& x = call.inputs[0];
    if (!call.attributes.String("axis").empty()) {
      const NdSbp& sbp = call.attributes.NdSbp("sbp");
      const bool fits = sbp.size() == 1 && !sbp[0].is_partial() &&
                        (!sbp[0].is_split() || sbp[0].dim() < x.shape.num_dims());
      if (!fits) {
        return InvalidArgument(
            "place: got {} for x {} along the axis {}, expected B, or S(dim) with "
            "one of its dims",
            ToString(sbp), x.ToString(), call.attributes.String("axis"));
      }
    }
    return Types{x};
  };
  op.gradient = [](ir::GradientContext& context) {
    context.set_input_gradient(0, context.output_gradient());  // its placement follows from other
                                                               // nodes
    return Status::Ok();
  };
  return op;
}

ir::OpDef Wait() {
  ir::OpDef op;
  op.name = op_names::kWait;
  op.doc =
      "Input 0 once its transfer is done, which a boxing op with `start` began or, where it is a "
      "variable, one whose result is assigned to it. The other inputs are what the transfer reads "
      "until then.";
  op.max_inputs = -1;
  op.traits.kind = ir::OpKind::kWait;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> { return Types{call.inputs[0]}; };
  op.not_differentiable = "collectives are inserted after backward is built";
  op.aliases = [](const ir::OpCall&) -> std::vector<ir::AliasRule> {
    return {Alias(ir::AliasRule::Kind::kOutputInsideInput, false)};
  };
  return op;
}

ir::OpDef AllReduce() {
  ir::OpDef op =
      Boxing(op_names::kAllReduce,
             "P -> B: every rank receives the sum of all ranks' terms, added in rank order, "
             "onto the accumulator "
             "(input 1, overwritten on the first micro-batch) if there is one.");
  op.infer_shape = TypeOfSum;
  op.max_inputs = 2;
  op.attributes.push_back(SummedAxes());
  op.traits.message_rounds = 2;
  op.sent_bytes = [](const ir::OpCall& call, int num_ranks) {
    return TermsSent(call, num_ranks) + ResultsSent(call, num_ranks);
  };
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
      Boxing(op_names::kReduceScatter,
             "P -> S(dim): rank r receives the r-th part of the sum, added in rank order, "
             "onto the accumulator "
             "(input 1, overwritten on the first micro-batch) if there is one. `in_place`: "
             "the part stays inside "
             "the input's memory.");
  op.infer_shape = TypeOfSum;
  op.max_inputs = 2;
  op.attributes.push_back({"dim", int64_t{0}});
  op.attributes.push_back({"in_place", false});
  op.attributes.push_back(SummedAxes());
  op.traits.message_rounds = 1;
  op.sent_bytes = TermsSent;
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
  ir::OpDef op =
      Boxing(op_names::kAllGather, "S(dim) -> B: every rank receives all parts, in rank order.");
  op.attributes.push_back({"dim", int64_t{0}});
  op.traits.message_rounds = 1;
  op.traits.sinks_to_user = true;
  op.sent_bytes = ResultsSent;
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    return {{{SplitOf(call, "dim")}, {Sbp::B()}}};
  };
  op.not_differentiable = "collectives are inserted after backward is built";
  op.aliases = [](const ir::OpCall& call) -> std::vector<ir::AliasRule> {
    if (!PartsFollowEachOther(call)) return {};
    return {Alias(ir::AliasRule::Kind::kInputInsideOutput, true)};
  };
  return op;
}

ir::OpDef AllToAll() {
  ir::OpDef op =
      Boxing(op_names::kAllToAll,
             "S(from) -> S(to): every rank sends each other rank the part that it needs.");
  op.attributes.push_back({"from", int64_t{0}, true});
  op.attributes.push_back({"to", int64_t{0}, true});
  op.traits.message_rounds = 1;
  op.sent_bytes = [](const ir::OpCall& call, int num_ranks) -> int64_t {
    const int64_t to_each = LargestPart(call, num_ranks) / num_ranks;
    return to_each * (num_ranks - 1) * SizeOf(call.inputs[0].dtype);
  };
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    return {{{SplitOf(call, "from")}, {SplitOf(call, "to")}}};
  };
  op.not_differentiable = "collectives are inserted after backward is built";
  return op;
}

ir::OpDef LocalSlice() {
  ir::OpDef op =
      Boxing(op_names::kLocalSlice,
             "B -> S(dim): every rank keeps its own part; nothing is sent. `copy`: the part has "
             "memory of its own, so that it may outlive the whole.");
  op.attributes.push_back({"dim", int64_t{0}});
  op.attributes.push_back({"copy", false});
  op.traits.sinks_to_user = true;
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    return {{{Sbp::B()}, {SplitOf(call, "dim")}}};
  };
  op.not_differentiable = "placements are chosen after backward is built";
  op.aliases = [](const ir::OpCall& call) -> std::vector<ir::AliasRule> {
    if (call.attributes.Bool("copy") || !PartsFollowEachOther(call)) return {};
    return {Alias(ir::AliasRule::Kind::kOutputInsideInput, true)};
  };
  return op;
}

ir::OpDef LocalTerm() {
  ir::OpDef op =
      Boxing(op_names::kLocalTerm,
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

void RegisterCollectivesOps(ir::OpRegistry& registry) {
  registry.Register(Place());
  registry.Register(AllReduce());
  registry.Register(ReduceScatter());
  registry.Register(AllGather());
  registry.Register(AllToAll());
  registry.Register(LocalSlice());
  registry.Register(LocalTerm());
  registry.Register(Wait());
}

}  // namespace zg
