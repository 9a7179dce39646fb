#include "framework/nn/linear.h"

#include <cmath>

#include "framework/nn/functions.h"
#include "framework/nn/lora.h"
#include "framework/nn/products.h"
#include "framework/nn/shapes.h"

namespace zg::nn {
namespace {

Initializer UniformFor(int64_t in) {
  return Initializer::Uniform(1.0 / std::sqrt(static_cast<double>(in)));
}

}  // namespace

Linear::Linear(const Module* parent, const std::string& name, int64_t in, int64_t out,
               const LinearOptions& options)
    : Module(parent, name),
      weight(this, "weight", {out, in}, options.weight.value_or(UniformFor(in))) {
  if (options.has_bias) {
    bias.emplace(this, "bias", Shape{out}, options.bias.value_or(UniformFor(in)));
  }
}

Var Linear::forward(Var x) {
  const Var w = weight;  // C++ leaves the order of arguments open; that of the variables is ours
  const Var y = bias.has_value() ? linear(x, w, *bias) : linear(x, w);
  return adapter == nullptr ? y : y + adapter->Difference(x);
}

Bilinear::Bilinear(const Module* parent, const std::string& name, int64_t a, int64_t b, int64_t out,
                   bool has_bias)
    : Module(parent, name), weight(this, "weight", {out, a, b}, UniformFor(a)) {
  if (has_bias) bias.emplace(this, "bias", Shape{out}, UniformFor(a));
}

Var Bilinear::operator()(Var a, Var b) {
  const Scope scope(*this);
  const Dims of_a = a.shape().dims(), of_b = b.shape().dims();
  const bool have_rows = !of_a.empty() && !of_b.empty() &&
                         Dims(of_a.begin(), of_a.end() - 1) == Dims(of_b.begin(), of_b.end() - 1);
  if (!have_rows || of_a.back() != weight.shape().dim(1) || of_b.back() != weight.shape().dim(2)) {
    return fail(InvalidArgument("got a {} and b {}, expected (..., {}) and (..., {})",
                                a.shape().ToString(), b.shape().ToString(), weight.shape().dim(1),
                                weight.shape().dim(2)));
  }
  Dims of_y(of_a.begin(), of_a.end() - 1);
  of_y.push_back(weight.shape().dim(0));
  const Var rows_a = reshape(a, {-1, of_a.back()}), rows_b = reshape(b, {-1, of_b.back()});
  const Var y = reshape(einsum("ni,oij,nj->no", {rows_a, weight, rows_b}), of_y);
  return bias.has_value() ? y + *bias : y;
}

}  // namespace zg::nn
