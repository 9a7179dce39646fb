// Session: gradients and updates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/eager/session.h"
#include "framework/ir/builder.h"
#include "framework/ir/differentiate.h"

namespace zg::eager {
namespace {

// The nodes of the section from which the value was computed, in order.
std::vector<ir::Node*> NodesBefore(const ir::Section& section, const ir::Value* value) {
  std::unordered_set<const ir::Node*> before = {value->producer};
  std::vector<const ir::Node*> unvisited = {value->producer};
  while (!unvisited.empty()) {
    const ir::Node* const node = unvisited.back();
    unvisited.pop_back();
    for (const ir::Value* input : node->inputs) {
      if (before.insert(input->producer).second) unvisited.push_back(input->producer);
    }
  }
  std::vector<ir::Node*> nodes;
  for (ir::Node* node : section.nodes) {
    if (before.count(node) != 0) nodes.push_back(node);
  }
  return nodes;
}

// "exp_avg f32[4,3], exp_avg_sq f32[4,3]".
std::string StatesText(const std::vector<std::pair<std::string, TensorType>>& states) {
  std::string text;
  for (const auto& [name, type] : states) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, type.ToString());
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Status Session::CheckIsCurrent(const std::vector<ir::Node*>& nodes) const {
  for (const ir::Node* node : nodes) {
    if (node->inputs.empty() || memory_.at(node->outputs[0]).step == context_.step) continue;
    return InvalidArgument(
        "backward: %{} was computed before the step that changed parameters; compute the loss "
        "again",
        node->outputs[0]->name);
  }
  return Status::Ok();
}

Status Session::Backward(ir::Value* loss) {
  if (loss->type != TensorType{DType::kF32, Shape{}}) {
    return InvalidArgument("backward: %{} is {}, expected the scalar f32[]", loss->name,
                           loss->type.ToString());
  }
  const std::vector<ir::Node*> nodes =
      NodesBefore(*graph_.section(ir::SectionKind::kForward), loss);
  ZG_RETURN_IF_ERROR(CheckIsCurrent(nodes));
  if (leaves_.empty() && ReadsEvalWeights(nodes)) {
    return InvalidArgument(
        "backward: %{} was computed from the weights that the optimizer has for evaluation, such as "
        "a moving average, which have no gradient; call set_training(true) before training goes on",
        loss->name);
  }
  std::unordered_set<const ir::Value*> sources = leaves_;
  for (const ir::Node* variable : graph_.section(ir::SectionKind::kVariables)->nodes) {
    if (ir::IsTrainableParameter(*variable->outputs[0])) sources.insert(variable->outputs[0]);
  }
  const std::unordered_set<const ir::Value*> needed = ir::DependingOn(nodes, sources);
  if (needed.count(loss) == 0) {
    return InvalidArgument(
        "backward: %{} depends on no trainable parameter, and on no tensor that asked by "
        "require_grad()",
        loss->name);
  }
  const ir::Section& section = *graph_.section(ir::SectionKind::kBackward);
  ir::Builder builder(&graph_, graph_.section(ir::SectionKind::kBackward));
  ir::Value* const seed = builder.Op("constant", {}, {{"value", 1.0}}, "loss_seed");
  ZG_ASSIGN_OR_RETURN(const auto gradients,
                      ir::Differentiate(&builder, nodes, {{loss, seed}}, needed));
  std::vector<std::pair<ir::Value*, ir::Value*>> wanted;  // variables in their order, then others
  for (const ir::Value* source : sources) {
    const auto found = gradients.find(source);
    if (found != gradients.end() && found->second != nullptr) {
      wanted.emplace_back(const_cast<ir::Value*>(source), found->second);
    }
  }
  std::unordered_set<const ir::Value*> kept;
  for (const auto& [source, gradient] : wanted) kept.insert(gradient);
  ZG_RETURN_IF_ERROR(RunAll(section.nodes, kept));
  for (const auto& [source, gradient] : wanted) {
    ZG_RETURN_IF_ERROR(Accumulate(source, gradient));
  }
  while (!section.nodes.empty()) {
    for (const ir::Value* output : section.nodes.back()->outputs) memory_.erase(output);
    graph_.Erase(section.nodes.back());
  }
  return Status::Ok();
}

Status Session::RunAll(const std::vector<ir::Node*>& nodes,
                       const std::unordered_set<const ir::Value*>& kept) {
  std::unordered_map<const ir::Value*, const ir::Node*> last_reader;
  for (const ir::Node* node : nodes) {
    for (const ir::Value* input : node->inputs) last_reader[input] = node;
  }
  const ir::Section* const section = nodes.empty() ? nullptr : nodes[0]->section;
  for (ir::Node* node : nodes) {
    ZG_RETURN_IF_ERROR(Run(node));
    for (const ir::Value* input : node->inputs) {
      const bool is_temporary = input->producer->section == section && kept.count(input) == 0;
      if (is_temporary && last_reader.at(input) == node) memory_.erase(input);
    }
  }
  return Status::Ok();
}

// The gradient becomes a separate value, without the nodes that it was computed from.
Status Session::Accumulate(const ir::Value* leaf, ir::Value* gradient) {
  const auto before = gradients_.find(leaf);
  if (before == gradients_.end()) {
    ZG_ASSIGN_OR_RETURN(gradients_[leaf], CopyOf(*gradient));
    return Status::Ok();
  }
  ir::Builder builder(&graph_, gradient->producer->section);
  ir::Value* const sum = builder.Op("add", {before->second.value(), gradient});
  ZG_RETURN_IF_ERROR(builder.status());
  ZG_RETURN_IF_ERROR(Run(sum->producer));
  ZG_ASSIGN_OR_RETURN(before->second, CopyOf(*sum));
  return Status::Ok();
}

Var Session::GradientOf(const ir::Value* value) const {
  for (const auto& [parameter, weights] : eval_weights_) {
    if (weights.value() == value) value = parameter;
  }
  const auto found = gradients_.find(value);
  return found == gradients_.end() ? Var() : found->second;
}

void Session::ZeroGradients() {
  const auto dead = std::move(gradients_);
  gradients_.clear();
}

// Sums next values as a graph sums those of a step's micro-batches.
Status Session::AddNextValue(ir::Node* node) {
  ir::Value* const next = node->inputs[1];
  NextValues& values = next_values_[node->inputs[0]];
  std::vector<std::byte> scratch;
  ZG_ASSIGN_OR_RETURN(const std::byte* const bytes, Read(*next, &scratch));
  const auto* const data = reinterpret_cast<const float*>(bytes);
  const int64_t count = next->type.shape.num_elements();
  if (values.count++ == 0) {
    values.sum.assign(data, data + count);
  } else {
    for (int64_t i = 0; i < count; ++i) values.sum[i] += data[i];
  }
  graph_.Erase(node);
  EraseUnused({next->producer});
  return Status::Ok();
}

Status Session::SetBuffers() {
  for (auto& [buffer, values] : next_values_) {
    const auto factor = static_cast<float>(1.0 / static_cast<double>(values.count));
    for (float& value : values.sum) value *= factor;
    ZG_RETURN_IF_ERROR(
        device_.Write(memory_.at(buffer).data, values.sum.data(), buffer->type.bytes()));
  }
  next_values_.clear();
  return Status::Ok();
}

Status Session::Step(const optim::Optimizer& optimizer, double lr_factor) {
  ZG_RETURN_IF_ERROR(variables_.CheckUnchanged().WithContext("Eager::step"));
  ZG_ASSIGN_OR_RETURN(const optim::UpdateRule rule, optim::MakeUpdateRule(optimizer));
  if (!(lr_factor >= 0.0 && std::isfinite(lr_factor))) {
    return InvalidArgument(
        "Eager::step: got a learning rate factor of {}, expected a finite number >= 0", lr_factor);
  }
  context_.lr_factor = lr_factor;
  ZG_RETURN_IF_ERROR(ContextChanged());
  for (const ir::Node* variable : graph_.section(ir::SectionKind::kVariables)->nodes) {
    ir::Value* const parameter = variable->outputs[0];
    if (gradients_.count(parameter) != 0) ZG_RETURN_IF_ERROR(Update(rule, parameter));
  }
  ZG_RETURN_IF_ERROR(SetBuffers());
  ZeroGradients();
  eval_weights_.clear();
  ++context_.step;
  trace_->RestartStreams();
  return ContextChanged();
}

Status Session::PrepareStates(const optim::UpdateRule& rule, const ir::Value& parameter) {
  std::vector<std::pair<std::string, TensorType>> wanted;
  for (const optim::State& state : rule.states) {
    wanted.push_back({state.name, {state.dtype, state.ShapeFor(parameter.type.shape)}});
  }
  Updates& updates = updates_[&parameter];
  std::vector<std::pair<std::string, TensorType>> there;
  for (const State& state : updates.states) there.push_back({state.name, state.type});
  if (updates.count > 0) {
    if (updates.op == rule.op && there == wanted) return Status::Ok();
    return InvalidArgument(
        "Eager::step: got {} with the states {}, expected {} with {}, as in the steps before; take "
        "all steps of an Eager with one kind of optimizer",
        rule.op, StatesText(wanted), updates.op, StatesText(there));
  }
  updates.op = rule.op;
  for (const auto& [name, type] : wanted) {
    ZG_ASSIGN_OR_RETURN(Memory zeros, Allocate(type.bytes()));
    ZG_RETURN_IF_ERROR(device_.Zero(zeros.data, type.bytes()));
    updates.states.push_back({name, type, std::move(zeros)});
  }
  return Status::Ok();
}

std::vector<ir::Value*> Session::StateValues(const ir::Value* parameter, ir::Builder* builder) {
  std::vector<ir::Value*> values;
  for (const State& state : updates_[parameter].states) {
    ir::Value* const value = builder->Op(
        "input", {},
        {{"name", state.name}, {"dtype", state.type.dtype}, {"shape", state.type.shape}});
    if (value == nullptr) continue;  // the builder's error
    memory_[value] = state.memory;
    values.push_back(value);
  }
  return values;
}

void Session::EraseUpdateNodes() {
  ir::Section* const section = graph_.section(ir::SectionKind::kUpdate);
  while (!section->nodes.empty()) {
    for (const ir::Value* output : section->nodes.back()->outputs) memory_.erase(output);
    graph_.Erase(section->nodes.back());
  }
}

// The update's node exists for one run; parameter and state are changed in place.
Status Session::Update(const optim::UpdateRule& optimizer, ir::Value* parameter) {
  const optim::UpdateRule& rule = optimizer.For(parameter->type.shape);
  ZG_RETURN_IF_ERROR(PrepareStates(rule, *parameter).WithContext(parameter->name));
  ir::Builder builder(&graph_, graph_.section(ir::SectionKind::kUpdate));
  std::vector<ir::Value*> operands = {parameter, gradients_.at(parameter).value()};
  const std::vector<ir::Value*> states = StateValues(parameter, &builder);
  operands.insert(operands.end(), states.begin(), states.end());
  const std::vector<ir::Value*> updated = builder.Ops(rule.op, operands, rule.attributes);
  ZG_RETURN_IF_ERROR(builder.status());
  std::vector<const void*> inputs;
  for (const ir::Value* operand : operands) inputs.push_back(memory_.at(operand).data);
  std::vector<void*> outputs = {memory_.at(parameter).data};
  for (const ir::Value* state : states) outputs.push_back(memory_.at(state).data);
  StepContext context = context_;
  context.step = ++updates_[parameter].count;  // that of its own updates, as in PyTorch
  ZG_RETURN_IF_ERROR(kernels_.SetContext(context));
  const Status status = kernels_.Run(*updated[0]->producer, inputs, outputs, &pool_);
  EraseUpdateNodes();
  if (rule.attributes.Has("eval_program") && !rule.attributes.String("eval_program").empty()) {
    eval_programs_[parameter] = rule.attributes.String("eval_program");
  }
  return status.WithContext(parameter->name);
}

// What the pass eval-weights does to the eval programs of a graph.
ir::Value* Session::ForEval(ir::Value* variable) {
  const auto program = eval_programs_.find(variable);
  if (program == eval_programs_.end()) return variable;
  Var& weights = eval_weights_[variable];
  if (!weights.empty()) return weights.value();
  ir::Builder builder(&graph_, graph_.section(ir::SectionKind::kUpdate));
  std::vector<ir::Value*> operands = {variable};
  for (ir::Value* state : StateValues(variable, &builder)) operands.push_back(state);
  const ir::Value* const computed =
      builder.Op("fused_elementwise", operands, {{"program", program->second}});
  Status status = builder.status();
  if (status.ok()) status = Run(computed->producer);
  if (status.ok()) {
    StatusOr<Var> copy = CopyOf(*computed, variable->name + ".eval");
    status = copy.status();
    if (copy.ok()) weights = *std::move(copy);
  }
  if (!status.ok()) Fail(status.WithContext(variable->name));
  EraseUpdateNodes();
  return weights.value();
}

Status Session::CheckAveraged(const ir::Value& variable) const {
  if (updates_.count(&variable) == 0 || eval_programs_.count(&variable) != 0) return Status::Ok();
  return InvalidArgument(
      "AveragedParameters: the optimizer of the steps so far keeps no average of '{}'; take them with a "
      "rule that does, such as with_ema(rule_of(AdamW{{lr}}), decay)",
      variable.name);
}

// Other than as constants.
bool Session::ReadsEvalWeights(const std::vector<ir::Node*>& nodes) const {
  const auto is_weights = [&](const ir::Value* value) {
    return std::any_of(eval_weights_.begin(), eval_weights_.end(),
                       [&](const auto& entry) { return entry.second.value() == value; });
  };
  return std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node* node) {
    return !node->op->traits.stops_gradient &&
           std::any_of(node->inputs.begin(), node->inputs.end(), is_weights);
  });
}

}  // namespace zg::eager
