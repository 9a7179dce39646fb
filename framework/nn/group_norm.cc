#include "framework/nn/group_norm.h"

#include "framework/nn/constants.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"

namespace zg {

Var group_norm(Var x, int64_t groups, double epsilon) {
  return nn::Checked("group_norm", x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() < 2 || groups < 1 || x.dim(1) % groups != 0) {
      return InvalidArgument(
          "{}: got {} groups, expected (B, channels, ...) and groups of equal sizes",
          nn::Caller("group_norm", x), groups);
    }
    const Var grouped = reshape(x, {x.dim(0), groups, -1});
    const Dims row = {grouped.dim(2)};
    const Var normal = layer_norm(grouped, ones(row, x.dtype()), zeros(row, x.dtype()), epsilon);
    return reshape(normal, x.shape().dims());
  });
}

Var instance_norm(Var x, double epsilon) {
  return nn::Checked("instance_norm", x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() < 3) {
      return InvalidArgument("{}: expected (B, channels, ...)", nn::Caller("instance_norm", x));
    }
    return group_norm(x, x.dim(1), epsilon);
  });
}

namespace nn {

GroupNorm::GroupNorm(const Module* parent, const std::string& name, int64_t groups,
                     int64_t channels, double epsilon)
    : Module(parent, name),
      weight(this, "weight", {channels}, Initializer::Ones()),
      bias(this, "bias", {channels}, Initializer::Zeros()),
      groups_(groups),
      channels_(channels),
      epsilon_(epsilon) {}

Var GroupNorm::forward(Var x) {
  return Checked("GroupNorm", x, [&]() -> StatusOr<Var> {
    const int num_dims = x.shape().num_dims();
    if (num_dims < 2 || x.dim(1) != channels_ || groups_ < 1 || channels_ % groups_ != 0) {
      return InvalidArgument(
          "{}: got {} channels in {} groups, expected (B, channels, ...) and "
          "groups of equal sizes",
          Caller("GroupNorm", x), channels_, groups_);
    }
    const Var normal = group_norm(x, groups_, epsilon_);
    const Var gamma = PerChannel(weight, num_dims);
    const Var beta = PerChannel(bias, num_dims);
    return normal * gamma + beta;
  });
}

}  // namespace nn

}  // namespace zg
