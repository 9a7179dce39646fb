#include "framework/ops/attention_rules.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/ops/op_rules.h"

namespace zg::attention_rules {

int64_t NumPairs(const Sizes& sizes, bool causal, int64_t window) {
  if (window == 0 && !causal) return sizes.queries * sizes.keys;
  int64_t pairs = 0;
  for (int64_t query = 0; query < sizes.queries; ++query) {
    const int64_t position = query + sizes.keys - sizes.queries;
    int64_t end = causal ? position + 1 : sizes.keys;
    if (window > 0 && !causal) end = std::min(end, position + window);
    const int64_t begin = window > 0 ? std::max<int64_t>(position - window + 1, 0) : 0;
    pairs += std::max<int64_t>(end - begin, 0);
  }
  return pairs;
}

int64_t Flops(const Sizes& sizes, int64_t pairs, int64_t products, int64_t per_score) {
  return sizes.batch * pairs * (products * 2 * sizes.channels + per_score * sizes.heads);
}

Shape RowsOf(const Sizes& sizes) { return {sizes.batch, sizes.heads, sizes.queries}; }

void SetOwnHeads(const char* attribute, const ir::OpCall& logical, size_t input,
                 ir::OpCall* local) {
  const int64_t channels = logical.inputs[input].shape.dim(2);
  const int64_t own_channels = local->inputs[input].shape.dim(2);
  const int64_t heads = logical.attributes.Int(attribute);
  if (own_channels != channels) local->attributes.Set(attribute, heads * own_channels / channels);
}

Status CheckSoftCap(const ir::OpCall& call) {
  const double cap = call.attributes.Float("soft_cap");
  if (cap >= 0.0 && std::isfinite(static_cast<float>(cap))) return Status::Ok();
  return InvalidArgument("{}: soft_cap is {}, expected a positive number, or 0 for none",
                         call.op->name, cap);
}

ir::Value* GradientOfSinks(ir::GradientContext& context, int sinks) {
  using Ints = std::vector<int64_t>;
  ir::Builder& builder = context.builder();
  const auto in_f32 = [&](ir::Value* x) {
    return x->type.dtype == DType::kF32 ? x : builder.Op("cast", {x}, {{"dtype", DType::kF32}});
  };
  ir::Value* const out = context.output(0);
  const int64_t heads = context.node().attributes.Int("heads");
  const int64_t head_size = out->type.shape.dim(2) / heads;
  ir::Value* const products =
      builder.Op("multiply", {in_f32(context.output_gradient()), in_f32(out)});
  ir::Value* const of_heads =  // (B, Tq, H, D)
      builder.Op(
          "reshape", {products},
          {{"from", Ints{1, 1, 1}}, {"to", Ints{1, 1, 2}}, {"sizes", Ints{-1, -1, -1, head_size}}});
  ir::Value* const delta = builder.Op("sum", {of_heads}, {{"dims", Ints{3}}});
  ir::Value* const log_sums =  // (B, Tq, H)
      builder.Op("permute", {context.output(1)}, {{"order", Ints{0, 2, 1}}});
  ir::Value* const weights =
      builder.Op("exp", {builder.Op("subtract", {in_f32(context.input(sinks)), log_sums})});
  ir::Value* const sum =
      builder.Op("sum", {builder.Op("multiply", {weights, delta})}, {{"dims", Ints{0, 1}}});
  ir::Value* const gradient = builder.Op("scale", {sum}, {{"factor", -1.0}});
  const DType dtype = context.input(sinks)->type.dtype;
  return dtype == DType::kF32 ? gradient : builder.Op("cast", {gradient}, {{"dtype", dtype}});
}

}  // namespace zg::attention_rules
