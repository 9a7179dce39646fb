#include "framework/nn/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/indexing.h"
#include "framework/nn/reductions.h"
#include "framework/ops/broadcasting.h"

namespace zg {

using nn::Caller;
using nn::Checked;
using nn::DimOf;

namespace {

// The logits that padded_logits adds: they have no probability.
constexpr double kPadding = -std::numeric_limits<double>::infinity();

// For matrices with batch dims. If all batches share one b, it is a single product.
Var Product(Var a, Var b) {
  const int a_dims = a.shape().num_dims();
  if (a_dims == 2 || b.shape().num_dims() != 2) return nn::append("matmul", {a, b});
  Dims dims = a.shape().dims();
  const Var y = nn::append("matmul", {flatten(a, 0, -2), b});
  if (y.empty()) return y;
  dims.back() = y.dim(-1);
  return reshape(y, dims);
}

// Runs the op along the last dim, to which `dim` is moved.
Var AlongDim(const char* op, Var x, int64_t dim) {
  return Checked(op, x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf(op, x, dim));
    if (own == x.shape().num_dims() - 1) return nn::append(op, {x});
    return transpose(nn::append(op, {transpose(x, own, -1)}), own, -1);
  });
}

}  // namespace

Var matmul(Var a, Var b) {
  return Checked("matmul", a, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("matmul").CheckUsable(b).WithContext("matmul"));
    const bool is_row = a.shape().num_dims() == 1, is_column = b.shape().num_dims() == 1;
    Var y = Product(is_row ? unsqueeze(a, 0) : a, is_column ? unsqueeze(b, 1) : b);
    if (is_row && !y.empty()) y = squeeze(y, -2);
    if (is_column && !y.empty()) y = squeeze(y, -1);
    return y;
  });
}

Var grouped_matmul(Var x, Var matrices, Var ids, bool transposed) {
  return Checked("grouped_matmul", x, [&]() -> StatusOr<Var> {
    const nn::Trace& trace = nn::Trace::Of("grouped_matmul");
    ZG_RETURN_IF_ERROR(trace.CheckUsable(matrices).WithContext("grouped_matmul: matrices"));
    ZG_RETURN_IF_ERROR(trace.CheckUsable(ids).WithContext("grouped_matmul: ids"));
    if (x.shape().num_dims() == 0) return InvalidArgument("grouped_matmul: x is a single number");
    Dims x_rows = x.shape().dims();
    x_rows.pop_back();
    const std::optional<Shape> rows = BroadcastShapes(Shape(x_rows), ids.shape());
    if (!rows.has_value()) {
      return InvalidArgument("grouped_matmul: ids {} do not fit the rows {} of x",
                             ids.shape().ToString(), Shape(x_rows).ToString());
    }
    Dims dims = rows->dims();
    const Var all_ids = expand(ids, dims);
    dims.push_back(x.dim(-1));
    const Var y =
        nn::append("grouped_matmul",
                   {reshape(expand(x, dims), {-1, x.dim(-1)}), matrices, reshape(all_ids, {-1})},
                   {{"transposed", transposed}});
    if (y.empty()) return y;
    dims.back() = y.dim(-1);
    return reshape(y, dims);
  });
}

Var padded_logits(Var x, Var weight, int64_t multiple) {
  return Checked("padded_logits", weight, [&]() -> StatusOr<Var> {
    if (multiple < 1) {
      return InvalidArgument("padded_logits: got a multiple of {}, expected at least 1", multiple);
    }
    if (weight.shape().num_dims() != 2) {
      return InvalidArgument("padded_logits: got a weight of shape {}, expected (V, C)",
                             weight.shape().ToString());
    }
    const int64_t classes = weight.dim(0);
    const int64_t added = (multiple - classes % multiple) % multiple;
    if (added == 0) return linear(x, weight);
    const Var zeros = to(arange(classes), DType::kF32) * 0.0;
    const Var bias = pad(zeros, 0, 0, added, kPadding);
    return linear(x, pad(weight, 0, 0, added), bias);
  });
}

int64_t nn::NumClasses(Var logits) {
  const int64_t columns = logits.dim(-1);
  const ir::Value* value = logits.value();
  while (value->type.shape.num_dims() > 0 && value->type.shape.dim(-1) == columns) {
    const std::vector<ir::Value*>& inputs = value->producer->inputs;
    if (inputs.size() == 3) {  // x, weight, bias
      const ir::Node& bias = *inputs[2]->producer;
      const bool is_padded = bias.inputs.size() == 1 && bias.attributes.Has("value") &&
                             bias.attributes.Float("value") == kPadding;
      return is_padded ? bias.inputs[0]->type.shape.dim(0) : columns;
    }
    if (inputs.size() != 1) return columns;
    value = inputs[0];
  }
  return columns;
}

Var softmax(Var x, int64_t dim) { return AlongDim("softmax", x, dim); }
Var log_softmax(Var x, int64_t dim) { return AlongDim("log_softmax", x, dim); }

}  // namespace zg
