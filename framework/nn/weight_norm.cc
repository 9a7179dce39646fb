#include "framework/nn/weight_norm.h"

#include <cmath>
#include <memory>

#include "framework/nn/buffer.h"
#include "framework/nn/functions.h"
#include "framework/nn/products.h"
#include "framework/nn/reductions.h"
#include "framework/nn/shapes.h"
#include "framework/nn/trace.h"

namespace zg::nn {
namespace {

// The root of the mean of the squares of the elements that it makes.
double RootMeanSquare(const Initializer& initializer) {
  using Kind = Initializer::Kind;
  switch (initializer.kind) {
    case Kind::kConstant:
    case Kind::kNormal:
    case Kind::kTruncatedNormal:
      return std::hypot(initializer.scale, initializer.mean);
    case Kind::kUniform:
      return std::hypot(initializer.scale / std::sqrt(3.0), initializer.mean);
    default:
      return 0.0;
  }
}

// The norm, on average, of the elements that share one of dim `dim`.
double FirstNorm(const Parameter& weight, int64_t dim) {
  const Shape& shape = weight.shape();
  const double size =
      static_cast<double>(shape.num_elements()) / static_cast<double>(shape.dim(dim));
  const double norm = RootMeanSquare(weight.initializer()) * std::sqrt(size);
  return norm > 0.0 ? norm : 1.0;
}

struct SingularVectors {
  Buffer u, v;

  SingularVectors(const Module& layer, int64_t rows, int64_t columns)
      : u(&layer, "weight_u", {rows}, Initializer::Normal(1.0)),
        v(&layer, "weight_v", {columns}, Initializer::Normal(1.0)) {}
};

}  // namespace

void weight_norm(const Module& layer, Parameter& weight, int64_t dim) {
  const int num_dims = weight.shape().num_dims();
  const int64_t own = dim < 0 ? dim + num_dims : dim;
  if (own < 0 || own >= num_dims) {
    weight.reads_as([dim, shape = weight.shape()](Var) {
      return Trace::Of("weight_norm")
          .Fail(InvalidArgument("weight_norm: got dim {} for a weight {}", dim, shape.ToString()));
    });
    return;
  }
  Dims gains(num_dims, 1), others;
  for (int64_t i = 0; i < num_dims; ++i) {
    if (i == own) gains[i] = weight.shape().dim(static_cast<int>(i));
    if (i != own) others.push_back(i);
  }
  const auto gain = std::make_shared<const Parameter>(
      &layer, "weight_g", Shape(gains), Initializer::Constant(FirstNorm(weight, own)));
  weight.reads_as([gain, others](Var v) {
    const Var g = *gain;
    return v * (g / norm(v, others, /*keep_dims=*/true));
  });
}

namespace {

Status CheckOptions(const SpectralNormOptions& options) {
  constexpr int64_t kMaxIterations = 1000;
  if (options.iterations < 1 || options.iterations > kMaxIterations) {
    return InvalidArgument("spectral_norm: got {} iterations, expected 1 to {}", options.iterations,
                           kMaxIterations);
  }
  if (options.epsilon >= 0.0 && std::isfinite(options.epsilon)) return Status::Ok();
  return InvalidArgument("spectral_norm: got an epsilon of {}, expected a finite number >= 0",
                         options.epsilon);
}

}  // namespace

void spectral_norm(const Module& layer, Parameter& weight, const SpectralNormOptions& options) {
  const int64_t rows = weight.shape().dim(0);
  const auto vectors =
      std::make_shared<const SingularVectors>(layer, rows, weight.shape().num_elements() / rows);
  weight.reads_as([vectors, options](Var own) {
    if (const Status valid = CheckOptions(options); !valid.ok()) {
      return Trace::Of("spectral_norm").Fail(valid);
    }
    const Var matrix = flatten(own, 1);
    const Var constant = stop_gradient(matrix);
    const auto direction = [&](Var x) { return normalize(x, -1, options.epsilon); };
    Var u = direction(vectors->u), v = direction(vectors->v);
    if (is_training()) {
      for (int64_t i = 0; i < options.iterations; ++i) {
        v = direction(matmul(u, constant));
        u = direction(matmul(constant, v));
      }
      vectors->u.update(u);
      vectors->v.update(v);
    }
    const Var sigma = sum(u * matmul(matrix, v));
    return own / sigma;
  });
}

}  // namespace zg::nn
