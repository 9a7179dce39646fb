#include "framework/nn/batch_norm.h"

#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/images.h"
#include "framework/nn/shapes.h"

namespace zg::nn {

BatchNorm::BatchNorm(const Module* parent, const std::string& name, int64_t channels, int min_dims,
                     int max_dims, const BatchNormOptions& options)
    : Module(parent, name),
      weight(this, "weight", {channels}, Initializer::Ones()),
      bias(this, "bias", {channels}, Initializer::Zeros()),
      running_mean(this, "running_mean", {channels}, Initializer::Zeros()),
      running_var(this, "running_var", {channels}, Initializer::Ones()),
      channels_(channels),
      min_dims_(min_dims),
      max_dims_(max_dims),
      options_(options) {}

Status BatchNorm::Check(Var x) const {
  const int num_dims = x.shape().num_dims();
  const std::string who = Caller("BatchNorm", x);
  if (num_dims < min_dims_ || num_dims > max_dims_) {
    return InvalidArgument("{}: got {} dims, expected {} to {}", who, num_dims, min_dims_,
                           max_dims_);
  }
  if (!(options_.momentum >= 0.0 && options_.momentum <= 1.0)) {  // or NaN
    return InvalidArgument("{}: got a momentum of {}, expected 0 to 1", who, options_.momentum);
  }
  if (x.dim(1) != channels_) {
    return InvalidArgument("{}: got {} channels, which are dim 1, expected {}", who, x.dim(1),
                           channels_);
  }
  if (x.shape().num_elements() <= channels_ && is_training()) {
    return InvalidArgument("{}: got fewer than 2 elements per channel, which have no variance",
                           who);
  }
  return Status::Ok();
}

Var BatchNorm::Train(Var x) {
  const Var gamma = Gamma();  // before beta: C++ leaves the order of arguments open
  const BatchNormed normed = batch_norm(x, gamma, Beta(), options_.epsilon);
  if (normed.y.empty()) return normed.y;
  const double momentum = options_.momentum;
  const double count = static_cast<double>(x.shape().num_elements() / channels_);
  const Var mean = running_mean;
  const Var variance = running_var;
  running_mean.update(mean * (1.0 - momentum) + normed.mean * momentum);
  running_var.update(variance * (1.0 - momentum) +
                     normed.variance * (momentum * count / (count - 1.0)));
  return normed.y;
}

Var BatchNorm::Eval(Var x) {
  const int num_dims = x.shape().num_dims();
  const Var gamma = Gamma();
  const Var beta = Beta();
  const Var mean = running_mean;
  const Var factor = gamma * rsqrt(running_var + options_.epsilon);
  return (x - PerChannel(mean, num_dims)) * PerChannel(factor, num_dims) +
         PerChannel(beta, num_dims);
}

Var BatchNorm::forward(Var x) {
  return Checked("BatchNorm", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(Check(x));
    return is_training() ? Train(x) : Eval(x);
  });
}

}  // namespace zg::nn
