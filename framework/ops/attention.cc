// Scaled dot-product attention (arXiv 1706.03762) without options, on packed operands: qkv (B, T,
// 3C) = [q | k | v], each with its heads side by side; out (B, T, C); log_sum_exp (B, H, T) in f32
// of each query's scores, from which the gradient recomputes the weights. attention_options.h has
// the form with separate operands.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/attention_options.h"
#include "framework/ops/attention_rules.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using attention_rules::Flops;
using attention_rules::kHeads;
using attention_rules::kRowsOfHeads;
using attention_rules::NumPairs;
using attention_rules::RowsOf;
using attention_rules::SetOwnHeads;
using attention_rules::Sizes;
using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();
const Sbp kSplit = Sbp::S(0);
const Sbp kPackedHeads = Sbp::S(2, 3);  // of (B, T, 3C): each rank has some of q, of k and of v

void OwnPackedHeads(const ir::OpCall& logical, ir::OpCall* local) {
  SetOwnHeads("heads", logical, logical.inputs.size() == 1 ? 0 : 1, local);
}

StatusOr<Sizes> CheckQkv(const ir::OpCall& call, const InputNames& names, const Shape& qkv) {
  const int64_t heads = call.attributes.Int("heads");
  if (qkv.num_dims() != 3) return Rejected(call, names, "qkv is not (B, T, 3C)");
  if (heads < 1 || qkv.dim(2) % 3 != 0 || qkv.dim(2) / 3 % heads != 0) {
    return Rejected(call, names,
                    fmt::format("the last dim of qkv does not divide into 3 x {} heads", heads));
  }
  return Sizes{qkv.dim(0), qkv.dim(1), qkv.dim(1), qkv.dim(2) / 3, heads};
}

int64_t PackedFlops(const ir::OpCall& call, const Shape& qkv, int64_t products, int64_t per_score) {
  const int64_t heads = call.attributes.Int("heads");
  const Sizes sizes = {qkv.dim(0), qkv.dim(1), qkv.dim(1), qkv.dim(2) / 3, heads};
  return Flops(sizes, NumPairs(sizes, call.attributes.Bool("causal"), 0), products, per_score);
}

ir::OpDef Attention() {
  const InputNames names = {"qkv"};
  ir::OpDef op;
  op.name = "attention";
  op.doc =
      "Per head: out = softmax(q k^T / sqrt(C / heads)) v; with `causal` a query sees the keys up "
      "to "
      "its own position. Output 1 is the log of each softmax's denominator.";
  op.num_outputs = 2;
  op.attributes = {{"heads", int64_t{1}, true}, {"causal", true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    ZG_ASSIGN_OR_RETURN(const Sizes sizes, CheckQkv(call, names, call.inputs[0].shape));
    return Types{{call.inputs[0].dtype, {sizes.batch, sizes.queries, sizes.channels}},
                 {DType::kF32, RowsOf(sizes)}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return Signatures{{{kSplit}, {kSplit, kSplit}},
                      {{kPackedHeads}, {kHeads, kRowsOfHeads}, call.attributes.Int("heads")}};
  };
  op.localize = OwnPackedHeads;
  op.gradient = [](ir::GradientContext& context) {
    ZG_RETURN_IF_ERROR(CheckOnlyFirstUsed(context));
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(0, context.builder().Op("attention_grad",
                                                       {context.output_gradient(), context.input(0),
                                                        context.output(0), context.output(1)},
                                                       context.node().attributes));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return PackedFlops(call, call.inputs[0].shape, 2, 5); };
  return op;
}

ir::OpDef AttentionGrad() {
  const InputNames names = {"dout", "qkv", "out", "log_sum_exp"};
  ir::OpDef op;
  op.name = "attention_grad";
  op.traits.f32_inputs = {3};
  op.doc =
      "Per head, with weights w = exp(q k^T / s - log_sum_exp), s = sqrt(C / heads): dv = w^T "
      "dout, "
      "dz = w (dout v^T - rowsum(dout out)), dq = dz k / s, dk = dz^T q / s.";
  op.min_inputs = op.max_inputs = 4;
  op.attributes = {{"heads", int64_t{1}, true}, {"causal", true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"dout", "qkv", "out"}));
    ZG_ASSIGN_OR_RETURN(const Sizes sizes, CheckQkv(call, names, call.inputs[1].shape));
    const Shape out = {sizes.batch, sizes.queries, sizes.channels};
    if (call.inputs[0].shape != out || call.inputs[2].shape != out) {
      return Rejected(call, names, "dout and out do not fit qkv");
    }
    if (call.inputs[3] != TensorType{DType::kF32, RowsOf(sizes)}) {
      return Rejected(call, names, "log_sum_exp is not one f32 per batch entry, head and position");
    }
    return Types{call.inputs[1]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return Signatures{{{kSplit, kSplit, kSplit, kSplit}, {kSplit}},
                      {{P, B, B, B}, {P}},
                      {{kHeads, kPackedHeads, kHeads, kRowsOfHeads},
                       {kPackedHeads},
                       call.attributes.Int("heads")}};
  };
  op.localize = OwnPackedHeads;
  op.not_differentiable = attention_rules::kNoSecondDerivative;
  op.flops = [](const ir::OpCall& call) { return PackedFlops(call, call.inputs[1].shape, 5, 6); };
  return op;
}

}  // namespace

void RegisterAttentionOps(ir::OpRegistry& registry) {
  registry.Register(Attention());
  registry.Register(AttentionGrad());
  for (ir::OpDef& op : AttentionWithOptionsOps()) registry.Register(std::move(op));
}

}  // namespace zg
