// Scaled dot-product attention over packed queries, keys and values (arXiv 1706.03762) and its
// gradient. Shapes: qkv (B, T, 3C) = [q | k | v], each with its heads side by side; out (B, T, C);
// log_sum_exp (B, heads, T) in f32: of each query's scores, from which the gradient computes the
// weights again.
#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

struct Sizes {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t channels = 0;
  int64_t heads = 0;
};

StatusOr<Sizes> CheckQkv(const ir::OpCall& call, const InputNames& names, const Shape& qkv) {
  const int64_t heads = call.attributes.Int("heads");
  if (qkv.num_dims() != 3) return Rejected(call, names, "qkv is not (B, T, 3C)");
  if (heads < 1 || qkv.dim(2) % 3 != 0 || qkv.dim(2) / 3 % heads != 0) {
    return Rejected(call, names,
                    fmt::format("the last dim of qkv does not divide into 3 x {} heads", heads));
  }
  return Sizes{qkv.dim(0), qkv.dim(1), qkv.dim(2) / 3, heads};
}

// `products` matrix products of the size of queries times keys, over the pairs that the mask
// leaves, and `per_score` other operations for each of the scores.
int64_t Flops(const ir::OpCall& call, const Shape& qkv, int64_t products, int64_t per_score) {
  const int64_t time = qkv.dim(1);
  const int64_t pairs = call.attributes.Bool("causal") ? time * (time + 1) / 2 : time * time;
  const int64_t per_pair =
      products * 2 * (qkv.dim(2) / 3) + per_score * call.attributes.Int("heads");
  return qkv.dim(0) * pairs * per_pair;
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
    return Types{{call.inputs[0].dtype, {sizes.batch, sizes.time, sizes.channels}},
                 {DType::kF32, {sizes.batch, sizes.heads, sizes.time}}};
  };
  op.sbp_signatures = [](const ir::OpCall&) {
    return std::vector<ir::SbpSignature>{{{Sbp::S(0)}, {Sbp::S(0), Sbp::S(0)}}};
  };
  op.gradient = [](ir::GradientContext& context) {
    ZG_RETURN_IF_ERROR(CheckOnlyFirstOutputUsed(context));
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(0, context.builder().Op("attention_grad",
                                                       {context.output_gradient(), context.input(0),
                                                        context.output(0), context.output(1)},
                                                       context.node().attributes));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return Flops(call, call.inputs[0].shape, 2, 5); };
  return op;
}

ir::OpDef AttentionGrad() {
  const InputNames names = {"dout", "qkv", "out", "log_sum_exp"};
  ir::OpDef op;
  op.name = "attention_grad";
  op.doc =
      "Per head, with weights w = exp(q k^T / s - log_sum_exp), s = sqrt(C / heads): dv = w^T "
      "dout, "
      "dz = w (dout v^T - rowsum(dout out)), dq = dz k / s, dk = dz^T q / s.";
  op.min_inputs = op.max_inputs = 4;
  op.attributes = {{"heads", int64_t{1}, true}, {"causal", true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"dout", "qkv", "out"}));
    ZG_ASSIGN_OR_RETURN(const Sizes sizes, CheckQkv(call, names, call.inputs[1].shape));
    const Shape out = {sizes.batch, sizes.time, sizes.channels};
    if (call.inputs[0].shape != out || call.inputs[2].shape != out) {
      return Rejected(call, names, "dout and out do not fit qkv");
    }
    if (call.inputs[3] != TensorType{DType::kF32, {sizes.batch, sizes.heads, sizes.time}}) {
      return Rejected(call, names, "log_sum_exp is not one f32 per batch entry, head and position");
    }
    return Types{call.inputs[1]};
  };
  op.sbp_signatures = [](const ir::OpCall&) {
    const Sbp split = Sbp::S(0);
    return std::vector<ir::SbpSignature>{{{split, split, split, split}, {split}},
                                         {{Sbp::P(), Sbp::B(), Sbp::B(), Sbp::B()}, {Sbp::P()}}};
  };
  op.not_differentiable = kNoSecondDerivative;
  op.flops = [](const ir::OpCall& call) { return Flops(call, call.inputs[1].shape, 5, 6); };
  return op;
}

}  // namespace

void RegisterAttentionOps(ir::OpRegistry& registry) {
  registry.Register(Attention());
  registry.Register(AttentionGrad());
}

}  // namespace zg
