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

bool Has(std::string_view letters, char letter) { return letters.find(letter) != letters.npos; }

// The letters of `letters` for which `wanted` holds, in their order.
template <typename Wanted>
std::string Letters(std::string_view letters, const Wanted& wanted) {
  std::string result;
  std::copy_if(letters.begin(), letters.end(), std::back_inserter(result), wanted);
  return result;
}

// x, whose dims are called `letters`, with its dims in the order of `order`.
Var Ordered(Var x, std::string_view letters, std::string_view order) {
  Dims dims;
  for (const char letter : order) dims.push_back(static_cast<int64_t>(letters.find(letter)));
  return permute(x, dims);
}

Dims SizesOf(Var x, std::string_view letters, std::string_view some) {
  Dims sizes;
  for (const char letter : some) sizes.push_back(x.dim(static_cast<int>(letters.find(letter))));
  return sizes;
}

int64_t ProductOf(const Dims& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

struct Equation {
  std::string a, b, y;
};

StatusOr<Equation> ParseEquation(std::string_view text, Var a, Var b) {
  Equation equation;
  const std::string letters = Letters(text, [](char c) { return c != ' '; });
  const size_t comma = letters.find(','), arrow = letters.find("->");
  const auto error = [&](std::string_view problem) {
    return InvalidArgument(
        "einsum '{}' of %{} {} and %{} {}: {}, expected a letter for each dim, as in "
        "'bij,bjk->bik'",
        text, a.value()->name, a.value()->type.ToString(), b.value()->name,
        b.value()->type.ToString(), problem);
  };
  if (comma == letters.npos || arrow == letters.npos || comma > arrow) {
    return error("it is not of the form 'a,b->y'");
  }
  equation.a = letters.substr(0, comma);
  equation.b = letters.substr(comma + 1, arrow - comma - 1);
  equation.y = letters.substr(arrow + 2);
  for (const std::string* names : {&equation.a, &equation.b, &equation.y}) {
    for (const char letter : *names) {
      const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
      if (!is_letter) return error(fmt::format("got '{}'", letter));
      if (std::count(names->begin(), names->end(), letter) > 1) {
        return error(fmt::format("'{}' names two dims of one tensor", letter));
      }
    }
  }
  if (equation.a.size() != a.shape().dims().size() ||
      equation.b.size() != b.shape().dims().size()) {
    return error("the numbers of dims differ");
  }
  for (const char letter : equation.y) {
    if (!Has(equation.a, letter) && !Has(equation.b, letter)) {
      return error(fmt::format("no operand has '{}'", letter));
    }
  }
  for (const char letter : equation.a) {
    if (!Has(equation.b, letter)) continue;
    const int64_t of_a = a.dim(static_cast<int>(equation.a.find(letter)));
    const int64_t of_b = b.dim(static_cast<int>(equation.b.find(letter)));
    if (of_a != of_b) return error(fmt::format("'{}' is {} and {}", letter, of_a, of_b));
  }
  return equation;
}

// Sums over the dims that only this operand has, and the result has not.
Var SumAlone(Var x, std::string* letters, std::string_view other, std::string_view y) {
  Dims alone;
  for (size_t i = 0; i < letters->size(); ++i) {
    if (!Has(other, (*letters)[i]) && !Has(y, (*letters)[i])) {
      alone.push_back(static_cast<int64_t>(i));
    }
  }
  if (alone.empty()) return x;
  *letters = Letters(*letters, [&](char c) { return Has(other, c) || Has(y, c); });
  return sum(x, alone);
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

Var einsum(std::string_view text, Var a, Var b) {
  return Checked("einsum", a, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("einsum").CheckUsable(b).WithContext("einsum"));
    ZG_ASSIGN_OR_RETURN(Equation equation, ParseEquation(text, a, b));
    const Var left = SumAlone(a, &equation.a, equation.b, equation.y);
    const Var right = SumAlone(b, &equation.b, equation.a, equation.y);
    const std::string& y = equation.y;
    const auto in_both = [&](char c) { return Has(equation.a, c) && Has(equation.b, c); };
    const std::string batch = Letters(y, in_both);
    const std::string summed =
        Letters(equation.a, [&](char c) { return in_both(c) && !Has(y, c); });
    const std::string rows = Letters(equation.a, [&](char c) { return !in_both(c); });
    const std::string columns = Letters(equation.b, [&](char c) { return !in_both(c); });
    const Dims row_sizes = SizesOf(left, equation.a, rows);
    const Dims column_sizes = SizesOf(right, equation.b, columns);
    const int64_t depth = ProductOf(SizesOf(left, equation.a, summed));
    Dims of_a = SizesOf(left, equation.a, batch), of_b = of_a, of_y = of_a;
    of_a.insert(of_a.end(), {ProductOf(row_sizes), depth});
    of_b.insert(of_b.end(), {depth, ProductOf(column_sizes)});
    of_y.insert(of_y.end(), row_sizes.begin(), row_sizes.end());
    of_y.insert(of_y.end(), column_sizes.begin(), column_sizes.end());
    const Var product =
        nn::append("matmul", {reshape(Ordered(left, equation.a, batch + rows + summed), of_a),
                              reshape(Ordered(right, equation.b, batch + summed + columns), of_b)});
    return Ordered(reshape(product, of_y), batch + rows + columns, y);
  });
}

Var einsum(std::string_view text, const std::vector<Var>& operands) {
  nn::Trace& trace = nn::Trace::Of("einsum");
  const std::string equation = Letters(text, [](char c) { return c != ' '; });
  const size_t arrow = equation.find("->");
  const auto num_named = std::count(equation.begin(), equation.end(), ',') + 1;
  if (arrow == equation.npos || operands.size() < 2 ||
      num_named != static_cast<int64_t>(operands.size())) {
    return trace.Fail(InvalidArgument(
        "einsum '{}': got {} operands, expected two or more, and the form 'a,b,c->y'", text,
        operands.size()));
  }
  std::string_view rest = std::string_view(equation).substr(0, arrow);  // not multiplied yet
  const auto next = [&] {
    const std::string_view letters = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), letters.size() + 1));
    return std::string(letters);
  };
  Var product = operands[0];
  std::string of_product = next();
  for (size_t i = 1; i < operands.size(); ++i) {
    const std::string own = next();
    std::string kept = equation.substr(arrow + 2);
    if (i + 1 < operands.size()) {
      std::string seen;
      kept = Letters(of_product + own, [&](char c) {
        const bool is_new = !Has(seen, c);
        seen += c;
        return is_new && (Has(rest, c) || Has(std::string_view(equation).substr(arrow), c));
      });
    }
    product = einsum(fmt::format("{},{}->{}", of_product, own, kept), product, operands[i]);
    if (product.empty()) return product;
    of_product = kept;
  }
  return product;
}

Var outer(Var a, Var b) {
  const nn::Trace::Function called("outer");
  return einsum("i,j->ij", a, b);
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
