// Sums over dims, and the repetition along dims that is their gradient.
#include <fmt/format.h>

#include <algorithm>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

// Ascending dims of a tensor with `num_dims`.
Status CheckDims(const ir::OpCall& call, const InputNames& names, int num_dims) {
  const std::vector<int64_t>& dims = call.attributes.Ints("dims");
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool ascends = i == 0 || dims[i] > dims[i - 1];
    if (dims[i] >= 0 && dims[i] < num_dims && ascends) continue;
    return Rejected(call, names,
                    fmt::format("got dims [{}], expected ascending numbers below {}",
                                fmt::join(dims, ","), num_dims));
  }
  return Status::Ok();
}

bool Contains(const std::vector<int64_t>& dims, int64_t dim) {
  return std::binary_search(dims.begin(), dims.end(), dim);
}

// For each dim of the tensor that has all of them, the corresponding dim of the other tensor; -1:
// none.
std::vector<int> OtherDims(const ir::OpCall& call, int num_dims) {
  const bool keeps = call.attributes.Bool("keep_dims");
  std::vector<int> others(num_dims);
  int next = 0;
  for (int dim = 0; dim < num_dims; ++dim) {
    const bool is_kept = keeps || !Contains(call.attributes.Ints("dims"), dim);
    others[dim] = is_kept ? next++ : -1;
  }
  return others;
}

StatusOr<Types> SumType(const ir::OpCall& call) {
  const InputNames names = {"x"};
  const Shape& x = call.inputs[0].shape;
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  ZG_RETURN_IF_ERROR(CheckDims(call, names, x.num_dims()));
  std::vector<int64_t> dims;
  for (int dim = 0; dim < x.num_dims(); ++dim) {
    if (!Contains(call.attributes.Ints("dims"), dim)) {
      dims.push_back(x.dim(dim));
    } else if (call.attributes.Bool("keep_dims")) {
      dims.push_back(1);
    }
  }
  return Types{{call.inputs[0].dtype, Shape(std::move(dims))}};
}

StatusOr<Types> ExpandType(const ir::OpCall& call) {
  const InputNames names = {"x"};
  const std::vector<int64_t>& dims = call.attributes.Ints("dims");
  const std::vector<int64_t>& sizes = call.attributes.Ints("sizes");
  const bool keeps = call.attributes.Bool("keep_dims");
  const Shape& x = call.inputs[0].shape;
  const int num_dims = x.num_dims() + (keeps ? 0 : static_cast<int>(dims.size()));
  if (call.attributes.Float("factor") != 1.0) {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  }
  ZG_RETURN_IF_ERROR(CheckDims(call, names, num_dims));
  if (sizes.size() != dims.size()) {
    return Rejected(call, names,
                    fmt::format("got {} sizes for {} dims", sizes.size(), dims.size()));
  }
  const std::vector<int> others = OtherDims(call, num_dims);
  std::vector<int64_t> result;
  for (int dim = 0; dim < num_dims; ++dim) {
    const auto found = std::lower_bound(dims.begin(), dims.end(), dim);
    const bool is_repeated = found != dims.end() && *found == dim;
    if (is_repeated && keeps && x.dim(dim) != 1) {
      return Rejected(call, names, fmt::format("dim {} is not 1, expected a size to repeat", dim));
    }
    result.push_back(is_repeated ? sizes[found - dims.begin()] : x.dim(others[dim]));
  }
  const Shape shape(std::move(result));
  if (!shape.IsValid()) return Rejected(call, names, "got sizes that no tensor has");
  return Types{{call.inputs[0].dtype, shape}};
}

ir::OpDef Sum() {
  ir::OpDef op;
  op.name = "sum";
  op.traits.computes_in_f32 = true;
  op.doc =
      "y = factor times the sum of x over `dims`, which are ascending; with `keep_dims` they stay, "
      "of size 1. Terms are added in f32, in an order that depends on the shape only: dims that "
      "are neighbours as one, and of several groups the last one first.";
  op.attributes = {{"dims", std::vector<int64_t>{}, true}, {"keep_dims", false}, {"factor", 1.0}};
  op.infer_shape = SumType;
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int num_dims = call.inputs[0].shape.num_dims();
    const std::vector<int> others = OtherDims(call, num_dims);
    std::vector<ir::SbpSignature> signatures;
    for (int dim = 0; dim < num_dims; ++dim) {
      const bool is_summed = Contains(call.attributes.Ints("dims"), dim);
      signatures.push_back({{Sbp::S(dim)}, {is_summed ? Sbp::P() : Sbp::S(others[dim])}});
    }
    signatures.push_back({{Sbp::P()}, {Sbp::P()}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    ir::Attributes attributes = context.node().attributes;
    std::vector<int64_t> sizes;
    for (const int64_t dim : attributes.Ints("dims")) {
      sizes.push_back(context.input(0)->type.shape.dim(static_cast<int>(dim)));
    }
    attributes.Set("sizes", sizes);
    context.set_input_gradient(
        0, context.builder().Op("expand", {context.output_gradient()}, std::move(attributes)));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef Expand() {
  ir::OpDef op;
  op.name = "expand";
  op.traits.keeps_dtype = true;
  op.doc =
      "y = factor x, repeated along `dims` of y, which are ascending, `sizes` times: x has none of "
      "them, or with `keep_dims` all, of size 1. Of i64 and bool without a factor.";
  op.attributes = {{"dims", std::vector<int64_t>{}, true},
                   {"sizes", std::vector<int64_t>{}, true},
                   {"keep_dims", false},
                   {"factor", 1.0}};
  op.infer_shape = ExpandType;
  op.sbp_signatures = [](const ir::OpCall& call) {
    const bool keeps = call.attributes.Bool("keep_dims");
    const size_t added = keeps ? 0 : call.attributes.Ints("dims").size();
    const int num_dims = call.inputs[0].shape.num_dims() + static_cast<int>(added);
    const std::vector<int> others = OtherDims(call, num_dims);
    std::vector<ir::SbpSignature> signatures;
    for (int dim = 0; dim < num_dims; ++dim) {
      if (Contains(call.attributes.Ints("dims"), dim)) continue;  // `sizes` are whole already
      signatures.push_back({{Sbp::S(others[dim])}, {Sbp::S(dim)}});
    }
    signatures.push_back({{Sbp::P()}, {Sbp::P()}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const ir::Attributes& from = context.node().attributes;
    ir::Attributes attributes = {{"dims", from.Ints("dims")},
                                 {"keep_dims", from.Bool("keep_dims")},
                                 {"factor", from.Float("factor")}};
    context.set_input_gradient(
        0, context.builder().Op("sum", {context.output_gradient()}, std::move(attributes)));
    return Status::Ok();
  };
  return op;
}

}  // namespace

void RegisterSumOps(ir::OpRegistry& registry) {
  registry.Register(Sum());
  registry.Register(Expand());
}

}  // namespace zg
