// Parameters and optimizer state as values: consolidated to one rank, or each rank's own.

#include <fmt/format.h>

#include <sstream>
#include <string>

#include "framework/train/trainer.h"

namespace zg {
namespace {

// The steps that the state has seen: their number, then a line for each group that some have skipped.
std::string StepsText(const OptimizerState& state) {
  std::string text = fmt::format("{}\n", state.step);
  for (const auto& [group, count] : state.skipped_steps) {
    text += fmt::format("{} {}\n", count, group);
  }
  return text;
}

}  // namespace

StatusOr<TensorDigest> Trainer::digest_parameters() {
  return DigestTensors(*executor_, TensorRole::kParameter);
}

StatusOr<TensorDigest> Trainer::digest_optimizer_state() {
  return DigestTensors(*executor_, TensorRole::kOptimizerState);
}

StatusOr<NamedValues> Trainer::consolidate_parameters(int to) {
  return ConsolidateTensors(*executor_, TensorRole::kParameter, to);
}

Status Trainer::scatter_parameters(const NamedValues& whole, int from,
                                   const std::string& may_lack) {
  ZG_ASSIGN_OR_RETURN(const std::vector<ScopePattern> lacking, OptionalScopePatterns(may_lack));
  return ScatterTensors(*executor_, TensorRole::kParameter, whole, from, lacking)
      .WithContext("parameters");
}

StatusOr<OptimizerState> Trainer::consolidate_optimizer_state(int to) {
  OptimizerState state;
  state.step = step_;
  state.skipped_steps = skipped_steps();
  ZG_ASSIGN_OR_RETURN(state.tensors,
                      ConsolidateTensors(*executor_, TensorRole::kOptimizerState, to));
  return state;
}

Status Trainer::scatter_optimizer_state(const OptimizerState& whole, int from) {
  ZG_RETURN_IF_ERROR(ScatterTensors(*executor_, TensorRole::kOptimizerState, whole.tensors, from)
                         .WithContext("optimizer state"));
  ZG_ASSIGN_OR_RETURN(
      const std::vector<std::string> steps,
      executor_->communicator().Exchange("step of the optimizer state", StepsText(whole)));
  std::istringstream text(steps[from]);
  text >> step_;
  std::map<std::string, int64_t> skipped;
  int64_t count = 0;
  for (std::string group; text >> count && text.get() == ' ' && std::getline(text, group);) {
    skipped[group] = count;
  }
  return set_skipped_steps(skipped);
}

StatusOr<OptimizerState> Trainer::local_optimizer_state() const {
  ZG_ASSIGN_OR_RETURN(NamedValues tensors, LocalTensors(*executor_, TensorRole::kOptimizerState));
  return OptimizerState{step_, skipped_steps(), std::move(tensors)};
}

Status Trainer::load_optimizer_state(const OptimizerState& state) {
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> steps,
                      executor_->communicator().Exchange("step of the optimizer state",
                                                         std::to_string(state.step)));
  for (size_t rank = 1; rank < steps.size(); ++rank) {
    if (steps[rank] == steps[0]) continue;
    return InvalidArgument(
        "optimizer state: rank {} gives that of step {}, rank 0 that of step {}; give all ranks "
        "one step's",
        rank, steps[rank], steps[0]);
  }
  ZG_RETURN_IF_ERROR(SetLocalTensors(*executor_, TensorRole::kOptimizerState, state.tensors)
                         .WithContext("optimizer state"));
  step_ = state.step;
  return set_skipped_steps(state.skipped_steps);
}

}  // namespace zg
