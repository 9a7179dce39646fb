#include "zero/memory_model.h"

#include <cmath>

#include "framework/passes/zero_stage.h"

namespace zg::zero {
namespace {

Status Check(const ModelStates& states) {
  if (!std::isfinite(states.num_parameters) || states.num_parameters <= 0) {
    return InvalidArgument("model states: got {} parameters, expected more than 0",
                           states.num_parameters);
  }
  if (states.ranks < 1) {
    return InvalidArgument("model states: got {} ranks, expected at least 1", states.ranks);
  }
  if (states.stage < 0 || states.stage > 3) {
    return InvalidArgument("model states: stage is {}, expected 0, 1, 2 or 3", states.stage);
  }
  return Status::Ok();
}

}  // namespace

StatusOr<ModelStateBytes> PredictModelStates(const ModelStates& states) {
  ZG_RETURN_IF_ERROR(Check(states));
  const auto bytes = [&](double bytes_per_parameter, Role role) {
    const bool divides = states.stage >= FirstStageThatShards(role);
    const double ranks = divides ? static_cast<double>(states.ranks) : 1.0;
    return states.num_parameters * bytes_per_parameter / ranks;
  };
  return ModelStateBytes{bytes(states.bytes.parameters, Role::kParameter),
                         bytes(states.bytes.gradients, Role::kGradient),
                         bytes(states.bytes.optimizer_state, Role::kOptimizerState)};
}

StatusOr<double> PredictElementsSent(const ModelStates& states) {
  ZG_RETURN_IF_ERROR(Check(states));
  return (states.stage == 3 ? 3 : 2) * states.num_parameters;
}

}  // namespace zg::zero
