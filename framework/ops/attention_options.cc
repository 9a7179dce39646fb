// Shapes: q (B, Tq, H D), k and v (B, Tk, K D), each with its heads of D channels side by side;
// query head h uses key head h / (H / K), as in grouped-query attention (arXiv 2305.13245); out has
// the shape of q; log_sum_exp (B, H, Tq) in f32 of each query's scores, from which the gradient
// recomputes the weights.
//
// The weights that dropout_attention drops depend on the micro-batch and the index of an element.
// With an operand `part` a call has some of the equal parts of the heads (kernels/parted_dim.h),
// and drops the same weights of them as the whole.
#include "framework/ops/attention_options.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "framework/ir/parts_context.h"
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

// The inputs of a call: those of `first`, and a mask, a bias, sinks and parts if the attributes say so.
struct Operands {
  InputNames names;
  int q = 0;  // k and v follow
  int mask = -1;
  int bias = -1;
  int sinks = -1;
  int part = -1;

  Operands(const ir::OpCall& call, const InputNames& first)
      : names(first), q(first.front() == "q" ? 0 : 1) {
    if (call.attributes.Bool("masked")) mask = Add("mask");
    if (call.attributes.Bool("biased")) bias = Add("bias");
    if (call.attributes.Bool("has_sinks")) sinks = Add("sinks");
    if (call.attributes.Has("parts") && call.attributes.Int("parts") > 1) part = Add("part");
  }

 private:
  int Add(std::string_view name) {
    names.push_back(name);
    return static_cast<int>(names.size()) - 1;
  }
};

const InputNames& ForwardInputs() {
  static const auto& names = *new InputNames{"q", "k", "v"};
  return names;
}
constexpr int kLogSumExp = 5;  // its place among them
const InputNames& BackwardInputs() {
  static const auto& names = *new InputNames{"dout", "q", "k", "v", "out", "log_sum_exp"};
  return names;
}

Status CheckOptions(const ir::OpCall& call, const Operands& operands, const Sizes& sizes) {
  if (call.attributes.Int("window") < 0) {
    return InvalidArgument("{}: window is {}, expected at least 1, or 0 for none", call.op->name,
                           call.attributes.Int("window"));
  }
  ZG_RETURN_IF_ERROR(CheckRange(call, "scale"));
  ZG_RETURN_IF_ERROR(attention_rules::CheckSoftCap(call));
  if (call.attributes.Has("probability")) ZG_RETURN_IF_ERROR(CheckRange(call, "probability", 1.0));
  if (operands.mask >= 0) {
    const TensorType& mask = call.inputs[operands.mask];
    const bool fits =
        mask.shape == Shape{sizes.batch} || mask.shape == Shape{sizes.batch, sizes.keys};
    if (mask.dtype != DType::kI64 || !fits) {
      return Rejected(call, operands.names,
                      "mask is neither i64 (B), how many keys each sequence has, nor i64 (B, Tk), "
                      "0 where a key is hidden");
    }
  }
  if (operands.part >= 0) {
    const auto key_heads = call.attributes.Int("key_heads");
    ZG_RETURN_IF_ERROR(CheckPart(call, operands.names, operands.part, key_heads));
  }
  if (operands.bias >= 0) {
    const Shape& bias = call.inputs[operands.bias].shape;
    const bool fits = bias.num_dims() == 4 && (bias.dim(0) == 1 || bias.dim(0) == sizes.batch) &&
                      (bias.dim(1) == 1 || bias.dim(1) == sizes.heads) &&
                      bias.dim(2) == sizes.queries && bias.dim(3) == sizes.keys;
    if (!fits) return Rejected(call, operands.names, "bias is not (1 or B, 1 or H, Tq, Tk)");
  }
  if (operands.sinks >= 0 && call.inputs[operands.sinks].shape != Shape{sizes.heads}) {
    return Rejected(call, operands.names, "sinks are not (H), one for each head of q");
  }
  return Status::Ok();
}

StatusOr<Sizes> CheckOperands(const ir::OpCall& call, const Operands& operands) {
  const InputNames& names = operands.names;
  if (call.inputs.size() != names.size()) {
    return InvalidArgument("{}: got {} inputs, expected {}", call.op->name, call.inputs.size(),
                           fmt::join(names, ", "));
  }
  ZG_RETURN_IF_ERROR(
      CheckOneFloatDType(call, names, {"dout", "q", "k", "v", "out", "bias", "sinks"}));
  const Shape& q = call.inputs[operands.q].shape;
  const Shape& k = call.inputs[operands.q + 1].shape;
  const int64_t heads = call.attributes.Int("heads");
  const int64_t key_heads = call.attributes.Int("key_heads");
  if (q.num_dims() != 3 || k.num_dims() != 3 || k != call.inputs[operands.q + 2].shape) {
    return Rejected(call, names, "q is not (B, Tq, H D), or k and v are not alike (B, Tk, K D)");
  }
  if (heads < 1 || key_heads < 1 || heads % key_heads != 0) {
    return InvalidArgument("{}: {} heads and {} key heads, expected a multiple of at least 1 each",
                           call.op->name, heads, key_heads);
  }
  if (q.dim(2) % heads != 0 || k.dim(2) != q.dim(2) / heads * key_heads) {
    return Rejected(
        call, names,
        fmt::format("the last dims do not divide into {} heads of q and {} of k, of one "
                    "size",
                    heads, key_heads));
  }
  if (k.dim(0) != q.dim(0)) return Rejected(call, names, "q and k differ in the batch");
  if (k.dim(1) < 1) return Rejected(call, names, "there are no keys");
  const Sizes sizes = {q.dim(0), q.dim(1), k.dim(1), q.dim(2), heads};
  ZG_RETURN_IF_ERROR(CheckOptions(call, operands, sizes));
  if (operands.q == 0) return sizes;
  if (call.inputs[0].shape != q || call.inputs[4].shape != q) {
    return Rejected(call, names, "dout and out do not fit q");
  }
  if (call.inputs[kLogSumExp] != TensorType{DType::kF32, RowsOf(sizes)}) {
    return Rejected(call, names, "log_sum_exp is not one f32 per batch entry, head and query");
  }
  return sizes;
}

int64_t OptionFlops(const ir::OpCall& call, int q, int64_t products, int64_t per_score) {
  const ir::Attributes& attributes = call.attributes;
  const Shape& shape = call.inputs[q].shape;
  const Sizes sizes = {shape.dim(0), shape.dim(1), call.inputs[q + 1].shape.dim(1), shape.dim(2),
                       attributes.Int("heads")};
  const int64_t pairs = NumPairs(sizes, attributes.Bool("causal"), attributes.Int("window"));
  return Flops(sizes, pairs, products, per_score);
}

// The batch is split; sinks, and a bias of all sequences, are whole on every rank.
std::vector<Sbp> SplitInputs(const ir::OpCall& call, const Operands& operands) {
  std::vector<Sbp> inputs(call.inputs.size(), kSplit);
  if (operands.bias >= 0 && call.inputs[operands.bias].shape.dim(0) == 1) inputs[operands.bias] = B;
  if (operands.sinks >= 0) inputs[operands.sinks] = B;
  if (operands.part >= 0) inputs[operands.part] = B;
  return inputs;
}

// Terms of dout give terms; not with dropout, whose mask belongs to a micro-batch.
std::vector<Sbp> PartialInputs(const ir::OpCall& call) {
  std::vector<Sbp> inputs(call.inputs.size(), B);
  inputs[0] = P;
  return inputs;
}

// Every rank has some of the heads: the query heads that use its key heads.
ir::SbpSignature SplitHeads(const ir::OpCall& call, const Operands& operands,
                            std::vector<Sbp> outputs) {
  ir::SbpSignature signature = {std::vector<Sbp>(call.inputs.size(), kHeads), std::move(outputs),
                                call.attributes.Int("key_heads")};
  if (operands.q > 0) signature.inputs[kLogSumExp] = kRowsOfHeads;
  if (operands.mask >= 0) signature.inputs[operands.mask] = B;
  if (operands.bias >= 0) {
    const bool is_by_head = call.inputs[operands.bias].shape.dim(1) != 1;
    signature.inputs[operands.bias] = is_by_head ? kRowsOfHeads : B;
  }
  if (operands.sinks >= 0) signature.inputs[operands.sinks] = kSplit;
  if (operands.part >= 0) signature.inputs[operands.part] = kSplit;
  return signature;
}

// If each rank has some of the heads, dropout needs to know which.
Status DropInParts(ir::PartsContext& context, const InputNames& inputs) {
  const ir::Node& node = context.node();
  const Operands operands(node.Call(), inputs);
  const bool is_by_heads = context.input_sbp(operands.q) == kHeads &&
                           node.attributes.Int("key_heads") % context.num_parts() == 0;
  if (operands.part >= 0 || !is_by_heads) return Status::Ok();
  std::vector<ir::Value*> with_part = node.inputs;
  with_part.push_back(context.Part());
  const std::vector<ir::Value*> outputs =
      context.builder().Ops(node.op->name, with_part, context.WithParts());
  for (size_t i = 0; i < outputs.size(); ++i) {
    context.set_output(static_cast<int>(i), outputs[i]);
  }
  return Status::Ok();
}

void OwnHeads(const ir::OpCall& logical, ir::OpCall* local, int q) {
  SetOwnHeads("heads", logical, q, local);
  SetOwnHeads("key_heads", logical, q + 1, local);
}

constexpr char kOptionsDoc[] =
    "Per head: out = softmax(c tanh(s q k^T / c) + bias) v, s = `scale` or, if that is 0, 1 / sqrt(D); "
    "`soft_cap` c, if it is not 0. Query i "
    "stands at position p = i + Tk - Tq of the keys; with `causal` it sees keys up to p, with a "
    "`window` only those less than it away from p, with `masked` those that `mask` shows: the first "
    "mask[b], or those where mask[b, key] is not 0. A query that sees no key gets 0, and in output "
    "1, the log of each softmax's denominator, the largest f32. `biased`: bias (1 or B, 1 or H, Tq, "
    "Tk). `has_sinks`: the denominators have e^sinks[h], too.";

// The three ops of a name, with or without dropout of the weights.
struct Variant {
  std::string name;
  bool drops = false;

  ir::OpDef Base(const char* suffix, const char* doc, const InputNames& inputs) const {
    ir::OpDef op;
    op.name = name + suffix;
    op.doc = doc;
    op.min_inputs = static_cast<int>(inputs.size());
    op.max_inputs = op.min_inputs + 3;
    op.attributes = {{"heads", int64_t{1}, true},
                     {"key_heads", int64_t{1}, true},
                     {"causal", false},
                     {"window", int64_t{0}},
                     {"scale", 0.0},
                     {"soft_cap", 0.0},
                     {"masked", false},
                     {"biased", false},
                     {"has_sinks", false}};
    if (drops) {
      op.traits.is_random = true;
      op.doc += " Weights are dropped with `probability`, and else divided by 1 - it.";
      op.attributes.push_back({"probability", 0.5, true});
      op.attributes.push_back({"stream", int64_t{0}, true});
      op.attributes.push_back({"parts", int64_t{1}});
      op.max_inputs += 1;
      op.in_parts = [inputs](ir::PartsContext& context) { return DropInParts(context, inputs); };
    }
    return op;
  }

  ir::OpDef Forward() const {
    ir::OpDef op = Base("", kOptionsDoc, ForwardInputs());
    op.num_outputs = 2;
    op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
      ZG_ASSIGN_OR_RETURN(const Sizes sizes, CheckOperands(call, Operands(call, ForwardInputs())));
      return Types{call.inputs[0], {DType::kF32, RowsOf(sizes)}};
    };
    op.sbp_signatures = [drops = drops](const ir::OpCall& call) {
      const Operands operands(call, ForwardInputs());
      Signatures signatures = {{SplitInputs(call, operands), {kSplit, kSplit}}};
      if (drops && operands.part < 0) return signatures;
      signatures.push_back(SplitHeads(call, operands, {kHeads, kRowsOfHeads}));
      return signatures;
    };
    op.localize = [](const ir::OpCall& logical, ir::OpCall* local) { OwnHeads(logical, local, 0); };
    op.gradient = [base = name](ir::GradientContext& context) {
      ZG_RETURN_IF_ERROR(CheckOnlyFirstUsed(context));
      const ir::Node& node = context.node();
      const Operands operands(node.Call(), ForwardInputs());
      std::vector<ir::Value*> inputs = {context.output_gradient(), context.input(0),
                                        context.input(1),          context.input(2),
                                        context.output(0),         context.output(1)};
      inputs.insert(inputs.end(), node.inputs.begin() + 3, node.inputs.end());
      if (context.needs(0) || context.needs(1) || context.needs(2)) {
        const std::vector<ir::Value*> gradients =
            context.builder().Ops(base + "_grad", inputs, node.attributes);
        for (int i = 0; i < 3; ++i) {
          if (context.needs(i)) context.set_input_gradient(i, gradients[i]);
        }
      }
      if (operands.bias >= 0 && context.needs(operands.bias)) {
        context.set_input_gradient(
            operands.bias, context.builder().Op(base + "_bias_grad", inputs, node.attributes));
      }
      if (operands.sinks >= 0 && context.needs(operands.sinks)) {
        context.set_input_gradient(operands.sinks,
                                   attention_rules::GradientOfSinks(context, operands.sinks));
      }
      return Status::Ok();
    };
    op.flops = [](const ir::OpCall& call) { return OptionFlops(call, 0, 2, 5); };
    return op;
  }

  ir::OpDef Backward() const {
    ir::OpDef op =
        Base("_grad",
             "The gradients of q, k and v, as of attention_grad; those of a key head are "
             "summed over its query heads.",
             BackwardInputs());
    op.traits.f32_inputs = {kLogSumExp};
    op.num_outputs = 3;
    op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
      ZG_RETURN_IF_ERROR(CheckOperands(call, Operands(call, BackwardInputs())).status());
      return Types{call.inputs[1], call.inputs[2], call.inputs[3]};
    };
    op.sbp_signatures = [drops = drops](const ir::OpCall& call) {
      const Operands operands(call, BackwardInputs());
      Signatures signatures = {{SplitInputs(call, operands), {kSplit, kSplit, kSplit}}};
      if (drops && operands.part < 0) return signatures;
      signatures.push_back(SplitHeads(call, operands, {kHeads, kHeads, kHeads}));
      if (!drops) signatures.push_back({PartialInputs(call), {P, P, P}});
      return signatures;
    };
    op.localize = [](const ir::OpCall& logical, ir::OpCall* local) { OwnHeads(logical, local, 1); };
    op.not_differentiable = attention_rules::kNoSecondDerivative;
    op.flops = [](const ir::OpCall& call) { return OptionFlops(call, 1, 5, 6); };
    return op;
  }

  ir::OpDef BiasBackward() const {
    ir::OpDef op =
        Base("_bias_grad",
             "The gradient of the bias: the scores' gradients, summed over the sequences and the "
             "heads that share it.",
             BackwardInputs());
    op.traits.f32_inputs = {kLogSumExp};
    op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
      const Operands operands(call, BackwardInputs());
      ZG_RETURN_IF_ERROR(CheckOperands(call, operands).status());
      if (operands.bias < 0) return InvalidArgument("{}: there is no bias", call.op->name);
      return Types{call.inputs[operands.bias]};
    };
    op.sbp_signatures = [drops = drops](const ir::OpCall& call) {
      const Operands operands(call, BackwardInputs());
      const std::vector<Sbp> split = SplitInputs(call, operands);
      const Sbp bias = split[operands.bias];
      Signatures signatures = {{split, {bias.is_broadcast() ? P : bias}}};
      if (drops && operands.part < 0) return signatures;
      ir::SbpSignature by_heads = SplitHeads(call, operands, {});
      const bool is_by_head = by_heads.inputs[operands.bias].is_split();
      by_heads.outputs = {is_by_head ? kRowsOfHeads : P};
      signatures.push_back(std::move(by_heads));
      if (!drops) signatures.push_back({PartialInputs(call), {P}});
      return signatures;
    };
    op.localize = [](const ir::OpCall& logical, ir::OpCall* local) { OwnHeads(logical, local, 1); };
    op.not_differentiable = attention_rules::kNoSecondDerivative;
    op.flops = [](const ir::OpCall& call) { return OptionFlops(call, 1, 2, 5); };
    return op;
  }
};

}  // namespace

std::vector<ir::OpDef> AttentionWithOptionsOps() {
  std::vector<ir::OpDef> ops;
  for (const Variant& variant :
       {Variant{"dot_product_attention"}, Variant{"dropout_attention", true}}) {
    ops.push_back(variant.Forward());
    ops.push_back(variant.Backward());
    ops.push_back(variant.BiasBackward());
  }
  return ops;
}

}  // namespace zg
