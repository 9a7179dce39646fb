// Matrix products: y = x weight^T + bias, its gradients for x, weight and bias, and two of these
// products with the gelu that follows or precedes them. y and dx may have another tensor added.
// Shapes: x (..., K), weight (N, K), bias (N), y (..., N); the leading dims count as rows.
#include <cstdint>
#include <map>
#include <vector>

#include "framework/ir/op_registry.h"
#include "framework/ops/addend.h"
#include "framework/ops/elementwise_table.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/summed_parts.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

constexpr char kFusedAfterBackward[] = "it is made of linear and gelu after build-backward";

// Rows of `rows` (a tensor with leading dims) times a matrix of `columns` columns.
int64_t ProductFlops(const TensorType& rows, int64_t columns) {
  return 2 * rows.shape.num_elements() * columns;
}

// The type of x weight^T + bias.
StatusOr<TensorType> LinearType(const ir::OpCall& call) {
  const InputNames names = {"x", "weight", "bias"};
  const Shape& x = call.inputs[0].shape;
  const Shape& weight = call.inputs[1].shape;
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  if (x.num_dims() < 1) return Rejected(call, names, "x has no dims");
  if (weight.num_dims() != 2) return Rejected(call, names, "weight is not a matrix");
  if (x.dim(-1) != weight.dim(1)) return Rejected(call, names, "inner dims differ");
  if (call.inputs.size() == 3 && call.inputs[2].shape != Shape{weight.dim(0)}) {
    return Rejected(call, names, "bias does not fit the rows of weight");
  }
  return TensorType{call.inputs[0].dtype, WithLastDim(x, weight.dim(0))};
}

int64_t LinearFlops(const ir::OpCall& call) {
  const int64_t columns = call.inputs[1].shape.dim(0);
  const int64_t bias = call.inputs.size() == 3 ? Rows(call.inputs[0].shape) * columns : 0;
  return ProductFlops(call.inputs[0], columns) + bias;
}

// The rows of equal tensors together: along their second dim, which a tensor of two dims gets.
ir::Value* TogetherRows(ir::Builder& builder, std::vector<ir::Value*> tensors) {
  using Ints = std::vector<int64_t>;
  if (tensors[0]->type.shape.num_dims() == 2) {
    for (ir::Value*& tensor : tensors) {
      tensor =
          builder.Op("reshape", {tensor},
                     {{"from", Ints{1, 0, 1}}, {"to", Ints{1, 1, 1}}, {"sizes", Ints{-1, -1, -1}}});
    }
  }
  return builder.Op("concat", tensors, {{"dim", 1}});
}

// The gradients of a weight that several products of few rows read, as in a recurrent layer, are one
// product of all their rows.
std::vector<ir::Value*> AddWeightGradients(ir::Builder& builder,
                                           const std::vector<ir::Value*>& gradients) {
  struct Products {
    std::vector<ir::Value*> dy, x, gradients;
  };
  std::map<std::vector<int64_t>, Products> products;  // by the shape of x
  for (ir::Value* gradient : gradients) {
    const std::vector<ir::Value*>& operands = gradient->producer->inputs;
    Products& like = products[operands[1]->type.shape.dims()];
    like.dy.push_back(operands[0]);
    like.x.push_back(operands[1]);
    like.gradients.push_back(gradient);
  }
  std::vector<ir::Value*> sums;
  for (const auto& [shape, like] : products) {
    sums.push_back(like.x.size() == 1
                       ? like.gradients[0]
                       : builder.Op("linear_grad_weight", {TogetherRows(builder, like.dy),
                                                           TogetherRows(builder, like.x)}));
  }
  return sums;
}

// Until the gradients are added up, those of rows are in memory, instead of one of the weight.
bool HasFewRows(const ir::OpCall& call) {
  const Shape& x = call.inputs[0].shape;
  return x.num_dims() >= 2 && Rows(x) < call.inputs[1].shape.dim(1);
}

ir::OpDef Linear() {
  ir::OpDef op;
  op.name = op_names::kLinear;
  op.doc = "y[..,n] = sum_k x[..,k] weight[n,k] + bias[n]; bias is optional.";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_ASSIGN_OR_RETURN(const TensorType y, LinearType(call));
    return Types{y};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[0].shape.num_dims() - 1;
    Signatures signatures;
    const auto add = [&](Sbp x, Sbp weight, Sbp bias, Sbp y) {
      signatures.push_back({{x, weight}, {y}});
      if (call.inputs.size() == 3) signatures.back().inputs.push_back(bias);
    };
    for (int dim = 0; dim < last; ++dim) add(Sbp::S(dim), B, B, Sbp::S(dim));
    add(B, Sbp::S(0), Sbp::S(0), Sbp::S(last));
    add(Sbp::S(last), Sbp::S(1), P, P);
    add(P, B, P, P);
    add(B, P, P, P);
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    ir::Builder& builder = context.builder();
    ir::Value* dy = context.output_gradient();
    ir::Value* x = context.input(0);
    ir::Value* weight = context.input(1);
    if (context.needs(0)) {
      context.set_input_gradient(0, builder.Op(op_names::kLinearGradInput, {dy, weight}));
    }
    if (context.needs(1)) {
      context.set_input_gradient(1, builder.Op("linear_grad_weight", {dy, x}));
    }
    if (context.num_inputs() == 3 && context.needs(2)) {
      context.set_input_gradient(2, builder.Op(op_names::kLinearGradBias, {dy}));
    }
    return Status::Ok();
  };
  op.gradient_sum = {1, HasFewRows, AddWeightGradients};
  op.flops = LinearFlops;
  return op;
}

ir::OpDef LinearGelu() {
  ir::OpDef op;
  op.name = op_names::kLinearGelu;
  op.doc =
      "y = gelu(h) and h[..,n] = sum_k x[..,k] weight[n,k] + bias[n], which the gradient reads; "
      "bias is optional.";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.num_outputs = 2;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_ASSIGN_OR_RETURN(const TensorType y, LinearType(call));
    return Types{y, y};
  };
  // The gelu of a sum is not the sum of the terms' gelus.
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[0].shape.num_dims() - 1;
    Signatures signatures;
    const auto add = [&](Sbp x, Sbp weight, Sbp bias, Sbp y) {
      signatures.push_back({{x, weight}, {y, y}});
      if (call.inputs.size() == 3) signatures.back().inputs.push_back(bias);
    };
    for (int dim = 0; dim < last; ++dim) add(Sbp::S(dim), B, B, Sbp::S(dim));
    add(B, Sbp::S(0), Sbp::S(0), Sbp::S(last));
    return signatures;
  };
  op.not_differentiable = kFusedAfterBackward;
  op.flops = [](const ir::OpCall& call) {
    const int64_t outputs = Rows(call.inputs[0].shape) * call.inputs[1].shape.dim(0);
    return LinearFlops(call) + RowOf(ElementwiseCode::kGelu).flops * outputs;
  };
  return op;
}

// The type of dy weight.
StatusOr<TensorType> LinearGradInputType(const ir::OpCall& call, const InputNames& names) {
  const Shape& dy = call.inputs[0].shape;
  const Shape& weight = call.inputs[1].shape;
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  if (dy.num_dims() < 1) return Rejected(call, names, "dy has no dims");
  if (weight.num_dims() != 2) return Rejected(call, names, "weight is not a matrix");
  if (dy.dim(-1) != weight.dim(0)) return Rejected(call, names, "outer dims differ");
  return TensorType{call.inputs[0].dtype, WithLastDim(dy, weight.dim(1))};
}

int64_t LinearGradInputFlops(const ir::OpCall& call) {
  return ProductFlops(call.inputs[0], call.inputs[1].shape.dim(1));
}

ir::OpDef LinearGradInput() {
  ir::OpDef op;
  op.name = op_names::kLinearGradInput;
  op.doc = "dx[..,k] = sum_n dy[..,n] weight[n,k].";
  op.min_inputs = op.max_inputs = 2;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_ASSIGN_OR_RETURN(const TensorType dx, LinearGradInputType(call, {"dy", "weight"}));
    return Types{dx};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[0].shape.num_dims() - 1;
    Signatures signatures;
    for (int dim = 0; dim < last; ++dim) signatures.push_back({{Sbp::S(dim), B}, {Sbp::S(dim)}});
    signatures.push_back({{Sbp::S(last), Sbp::S(0)}, {P}});
    signatures.push_back({{B, Sbp::S(1)}, {Sbp::S(last)}});
    signatures.push_back({{P, B}, {P}});
    signatures.push_back({{B, P}, {P}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    ir::Builder& builder = context.builder();
    ir::Value* ddx = context.output_gradient();
    if (context.needs(0)) {
      context.set_input_gradient(0, builder.Op(op_names::kLinear, {ddx, context.input(1)}));
    }
    if (context.needs(1)) {
      context.set_input_gradient(1, builder.Op("linear_grad_weight", {context.input(0), ddx}));
    }
    return Status::Ok();
  };
  op.flops = LinearGradInputFlops;
  return op;
}

ir::OpDef LinearGradInputGelu() {
  ir::OpDef op;
  op.name = op_names::kLinearGradInputGelu;
  op.doc = "dh[..,k] = gelu'(h[..,k]) sum_n dy[..,n] weight[n,k].";
  op.min_inputs = op.max_inputs = 3;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const InputNames names = {"dy", "weight", "h"};
    ZG_ASSIGN_OR_RETURN(const TensorType dh, LinearGradInputType(call, names));
    if (call.inputs[2].shape != dh.shape) {
      return Rejected(call, names, "h is not of the product's shape");
    }
    return Types{dh};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[0].shape.num_dims() - 1;
    Signatures signatures;
    for (int dim = 0; dim < last; ++dim) {
      signatures.push_back({{Sbp::S(dim), B, Sbp::S(dim)}, {Sbp::S(dim)}});
    }
    signatures.push_back({{B, Sbp::S(1), Sbp::S(last)}, {Sbp::S(last)}});
    return signatures;
  };
  op.not_differentiable = kNoSecondDerivative;
  op.flops = [](const ir::OpCall& call) {
    return LinearGradInputFlops(call) +
           RowOf(ElementwiseCode::kGeluGrad).flops * call.inputs[2].shape.num_elements();
  };
  return op;
}

ir::OpDef LinearGradWeight() {
  const InputNames names = {"dy", "x"};
  ir::OpDef op;
  op.name = "linear_grad_weight";
  op.doc = "dw[n,k] = sum over rows of dy[..,n] x[..,k].";
  op.min_inputs = op.max_inputs = 2;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const Shape& dy = call.inputs[0].shape;
    const Shape& x = call.inputs[1].shape;
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    if (dy.num_dims() < 1 || x.num_dims() < 1) return Rejected(call, names, "an input has no dims");
    if (WithoutLastDim(dy) != WithoutLastDim(x)) {
      return Rejected(call, names, "leading dims differ");
    }
    return Types{{call.inputs[0].dtype, Shape{dy.dim(-1), x.dim(-1)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[0].shape.num_dims() - 1;
    Signatures signatures;
    for (int dim = 0; dim < last; ++dim) signatures.push_back({{Sbp::S(dim), Sbp::S(dim)}, {P}});
    signatures.push_back({{Sbp::S(last), B}, {Sbp::S(0)}});
    signatures.push_back({{B, Sbp::S(last)}, {Sbp::S(1)}});
    signatures.push_back({{P, B}, {P}});
    signatures.push_back({{B, P}, {P}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    ir::Builder& builder = context.builder();
    ir::Value* ddw = context.output_gradient();
    if (context.needs(0)) {
      context.set_input_gradient(0, builder.Op(op_names::kLinear, {context.input(1), ddw}));
    }
    if (context.needs(1)) {
      context.set_input_gradient(1,
                                 builder.Op(op_names::kLinearGradInput, {context.input(0), ddw}));
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    return ProductFlops(call.inputs[0], call.inputs[1].shape.dim(-1));
  };
  return op;
}

ir::OpDef LinearGradBias() {
  const InputNames names = {"dy"};
  ir::OpDef op;
  op.name = op_names::kLinearGradBias;
  op.doc = "db[n] = sum over rows of dy[..,n].";
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    const Shape& dy = call.inputs[0].shape;
    if (dy.num_dims() < 1) return Rejected(call, names, "dy has no dims");
    return Types{{call.inputs[0].dtype, Shape{dy.dim(-1)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int last = call.inputs[0].shape.num_dims() - 1;
    Signatures signatures;
    for (int dim = 0; dim < last; ++dim) signatures.push_back({{Sbp::S(dim)}, {P}});
    signatures.push_back({{Sbp::S(last)}, {Sbp::S(0)}});
    signatures.push_back({{P}, {P}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const Shape& dy = context.input(0)->type.shape;
    std::vector<int64_t> dims, sizes;  // of the rows
    for (int dim = 0; dim + 1 < dy.num_dims(); ++dim) {
      dims.push_back(dim);
      sizes.push_back(dy.dim(dim));
    }
    context.set_input_gradient(0, context.builder().Op("expand", {context.output_gradient()},
                                                       {{"dims", dims}, {"sizes", sizes}}));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterLinearOps(ir::OpRegistry& registry) {
  for (ir::OpDef op : {WithSummedParts(WithAddend(Linear())), LinearGelu(),
                       WithSummedParts(WithAddend(LinearGradInput())), LinearGradInputGelu(),
                       LinearGradWeight(), WithSummedParts(LinearGradBias())}) {
    op.traits.keeps_groups = true;  // each row of a weight is a column of the result
    registry.Register(std::move(op));
  }
}

}  // namespace zg
