// Parameters and optimizer state as values: consolidated to one rank, or each rank's own.

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "framework/io/safetensors_writer.h"
#include "framework/ir/op_registry.h"
#include "framework/kernels/device_kernels.h"
#include "framework/ops/op_names.h"
#include "framework/train/trainer.h"

namespace zg {
namespace {

constexpr char kEvalProgram[] = "eval_program";

// The steps that the state has seen: their number, then a line for each group that some have skipped.
std::string StepsText(const OptimizerState& state) {
  std::string text = fmt::format("{}\n", state.step);
  for (const auto& [group, count] : state.skipped_steps) {
    text += fmt::format("{} {}\n", count, group);
  }
  return text;
}

OptimizerState ParseSteps(const std::string& steps_text) {
  OptimizerState state;
  std::istringstream text(steps_text);
  text >> state.step;
  int64_t count = 0;
  for (std::string group; text >> count && text.get() == ' ' && std::getline(text, group);) {
    state.skipped_steps[group] = count;
  }
  return state;
}

// Further steps can be counted from its steps.
Status CheckSteps(const OptimizerState& state) {
  constexpr int64_t kMaxStep = int64_t{1} << 53;
  if (state.step < 0 || state.step > kMaxStep) {
    return InvalidArgument("optimizer state: got step {}, expected 0 to {}", state.step, kMaxStep);
  }
  for (const auto& [group, count] : state.skipped_steps) {
    if (count >= 0 && count <= state.step) continue;
    return InvalidArgument(
        "optimizer state: got {} steps that skipped the group '{}', expected 0 to its {} steps",
        count, group, state.step);
  }
  return Status::Ok();
}

// The update rule of a parameter that has weights for evaluation; null: it has none.
const optim::UpdateRule* AveragingRuleOf(const optim::UpdateRules& rules, const std::string& name,
                                         const Shape& shape) {
  const optim::UpdateRule& rule = rules.RuleOf(rules.GroupOf(name)).For(shape);
  const bool averages =
      rule.attributes.Has(kEvalProgram) && !rule.attributes.String(kEvalProgram).empty();
  return averages ? &rule : nullptr;
}

// What the eval program of the rule makes of a parameter and its states, on the host.
Status Average(const optim::UpdateRule& rule, const std::string& name, const NamedValues& states,
               TensorValues* parameter) {
  std::vector<const void*> inputs = {parameter->values.data()};
  const TensorType type = {DType::kF32, parameter->shape};
  KernelSpec spec{{ir::OpRegistry::Global().Find(op_names::kFusedElementwise), {type}, {}}, {type}};
  for (const optim::State& state : rule.states) {
    const auto found = states.find(name + "." + state.name);
    if (found == states.end()) return Status::Ok();  // it is frozen
    inputs.push_back(found->second.values.data());
    spec.call.inputs.push_back(type);
  }
  spec.call.attributes.Set("program", rule.attributes.String(kEvalProgram));
  ZG_RETURN_IF_ERROR(ir::CompleteAttributes(spec.call.op->attributes, &spec.call.attributes));
  ZG_ASSIGN_OR_RETURN(const KernelRegistry* kernels, DeviceKernels(CpuDevice(), {}));
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, kernels->Make(spec));
  std::vector<std::byte> workspace(kernel->workspace_bytes());
  std::vector<float> average(parameter->values.size());
  const std::vector<void*> outputs = {average.data()};
  const StepContext context;
  ZG_RETURN_IF_ERROR(kernel->Run({inputs.data(), outputs.data(), workspace.data(), &context}));
  parameter->values = std::move(average);
  return Status::Ok();
}

}  // namespace

StatusOr<NamedValues> Trainer::averaged_parameters(int to) {
  if (graph_ == nullptr) {
    return FailedPrecondition(
        "averaged_parameters: the trainer has a program only; make it from a graph with make_trainer");
  }
  ZG_ASSIGN_OR_RETURN(const optim::UpdateRules rules, graph_->update_rules());
  ZG_ASSIGN_OR_RETURN(NamedValues values, consolidate_parameters(to));
  ZG_ASSIGN_OR_RETURN(const NamedValues states,
                      ConsolidateTensors(*executor_, TensorRole::kOptimizerState, to));
  Status status;
  bool has_any = executor_->communicator().rank() != to;
  for (auto& [name, parameter] : values) {
    const optim::UpdateRule* const rule = AveragingRuleOf(rules, name, parameter.shape);
    if (rule == nullptr) continue;
    has_any = true;
    if (status.ok()) status = Average(*rule, name, states, &parameter);
  }
  if (!has_any) {
    status = InvalidArgument("graph {}: its optimizer keeps no averages; train it with_ema(...)",
                             graph_->name());
  }
  ZG_RETURN_IF_ERROR(ExchangeStatus(executor_->communicator(), "average parameters", status));
  return values;
}

StatusOr<TensorDigest> Trainer::digest_parameters() {
  return DigestTensors(*executor_, TensorRole::kParameter);
}

StatusOr<TensorDigest> Trainer::digest_optimizer_state() {
  return DigestTensors(*executor_, TensorRole::kOptimizerState);
}

Status Trainer::save_parameters(const std::string& path, const NameInFile& name_in_file,
                                Weights weights) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("save_parameters"));
  ZG_ASSIGN_OR_RETURN(const NamedValues values, weights == Weights::kAveraged
                                                    ? averaged_parameters()
                                                    : consolidate_parameters());
  const auto write = [&]() -> Status {
    std::vector<TensorToWrite> tensors;
    std::map<std::string, std::string> parameters;  // by name in the file
    for (const auto& [parameter, tensor] : values) {
      const std::string name = name_in_file ? name_in_file(parameter) : parameter;
      if (name.empty()) {
        return InvalidArgument("{}: name_in_file names '{}' \"\", expected a name", path,
                               parameter);
      }
      const auto [other, is_new] = parameters.emplace(name, parameter);
      if (!is_new) {
        return InvalidArgument("{}: both '{}' and '{}' would be '{}'", path, other->second,
                               parameter, name);
      }
      tensors.push_back({name, SafetensorsDType::kF32, tensor.shape.dims(), tensor.values.data()});
    }
    return WriteSafetensors(path, std::move(tensors));
  };
  Communicator& communicator = executor_->communicator();
  return ExchangeStatus(communicator, "save parameters",
                        communicator.rank() == 0 ? write() : Status::Ok());
}

StatusOr<NamedValues> Trainer::consolidate_parameters(int to) {
  return ConsolidateTensors(*executor_, TensorRole::kParameter, to);
}

Status Trainer::scatter_parameters(const NamedValues& whole, int from,
                                   const std::string& may_lack) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("scatter_parameters"));
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
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("scatter_optimizer_state"));
  Communicator& communicator = executor_->communicator();
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> steps,
                      communicator.Exchange("step of the optimizer state", StepsText(whole)));
  // ScatterTensors refuses another rank.
  const bool is_rank = from >= 0 && from < communicator.size();
  const OptimizerState given = is_rank ? ParseSteps(steps[from]) : OptimizerState();
  ZG_RETURN_IF_ERROR(CheckSteps(given));
  ZG_RETURN_IF_ERROR(ScatterTensors(*executor_, TensorRole::kOptimizerState, whole.tensors, from)
                         .WithContext("optimizer state"));
  step_ = given.step;
  return set_skipped_steps(given.skipped_steps);
}

StatusOr<OptimizerState> Trainer::local_optimizer_state() const {
  ZG_ASSIGN_OR_RETURN(NamedValues tensors, LocalTensors(*executor_, TensorRole::kOptimizerState));
  return OptimizerState{step_, skipped_steps(), std::move(tensors)};
}

Status Trainer::load_optimizer_state(const OptimizerState& state) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("load_optimizer_state"));
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
  ZG_RETURN_IF_ERROR(
      ExchangeStatus(executor_->communicator(), "load optimizer state", CheckSteps(state)));
  ZG_RETURN_IF_ERROR(SetLocalTensors(*executor_, TensorRole::kOptimizerState, state.tensors)
                         .WithContext("optimizer state"));
  step_ = state.step;
  return set_skipped_steps(state.skipped_steps);
}

}  // namespace zg
