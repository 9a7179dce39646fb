// Session: gradients and updates.
#include <algorithm>
#include <cstring>

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
  ZG_ASSIGN_OR_RETURN(const auto gradients, ir::Differentiate(&builder, nodes, loss, seed, needed));
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
    gradients_[leaf] = Constant(gradient->type, memory_.at(gradient).data);
    return Status::Ok();
  }
  ir::Builder builder(&graph_, gradient->producer->section);
  ir::Value* const sum = builder.Op("add", {before->second.value(), gradient});
  ZG_RETURN_IF_ERROR(builder.status());
  ZG_RETURN_IF_ERROR(Run(sum->producer));
  before->second = Constant(sum->type, memory_.at(sum).data);
  return Status::Ok();
}

Var Session::GradientOf(const ir::Value* value) const {
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
  const auto* const data = reinterpret_cast<const float*>(memory_.at(next).data);
  const int64_t count = next->type.shape.num_elements();
  if (values.count++ == 0) {
    values.sum.assign(data, data + count);
  } else {
    for (int64_t i = 0; i < count; ++i) values.sum[i] += data[i];
  }
  graph_.Erase(node);
  EraseUnused(next->producer);
  return Status::Ok();
}

void Session::SetBuffers() {
  for (const auto& [buffer, values] : next_values_) {
    const auto factor = static_cast<float>(1.0 / static_cast<double>(values.count));
    auto* const data = reinterpret_cast<float*>(memory_.at(buffer).data);
    for (size_t i = 0; i < values.sum.size(); ++i) data[i] = values.sum[i] * factor;
  }
  next_values_.clear();
}

Status Session::Step(const optim::Optimizer& optimizer, double lr_factor) {
  ZG_ASSIGN_OR_RETURN(const optim::UpdateRule rule, optim::MakeUpdateRule(optimizer));
  context_.lr_factor = lr_factor;
  for (const ir::Node* variable : graph_.section(ir::SectionKind::kVariables)->nodes) {
    ir::Value* const parameter = variable->outputs[0];
    if (gradients_.count(parameter) != 0) ZG_RETURN_IF_ERROR(Update(rule, parameter));
  }
  SetBuffers();
  ZeroGradients();
  ++context_.step;
  trace_->RestartStreams();
  return Status::Ok();
}

// The update's node exists for one run; parameter and state are changed in place.
Status Session::Update(const optim::UpdateRule& optimizer, ir::Value* parameter) {
  const optim::UpdateRule& rule = optimizer.For(parameter->type.shape);
  ir::Section* const section = graph_.section(ir::SectionKind::kUpdate);
  ir::Builder builder(&graph_, section);
  std::vector<ir::Value*> operands = {parameter, gradients_.at(parameter).value()};
  std::vector<Memory>& states = states_[parameter];
  const bool is_new = states.empty();
  for (size_t i = 0; i < rule.states.size(); ++i) {
    ir::Value* const state =
        builder.Op("input", {},
                   {{"name", rule.states[i].name},
                    {"dtype", rule.states[i].dtype},
                    {"shape", rule.states[i].ShapeFor(parameter->type.shape)}});
    ZG_RETURN_IF_ERROR(builder.status());
    if (is_new) {
      states.push_back(Allocate(*state));
      std::memset(states.back().data, 0, state->type.bytes());
    }
    memory_[state] = states[i];
    operands.push_back(state);
  }
  const std::vector<ir::Value*> updated = builder.Ops(rule.op, operands, rule.attributes);
  ZG_RETURN_IF_ERROR(builder.status());
  std::vector<const void*> inputs;
  for (const ir::Value* operand : operands) inputs.push_back(memory_.at(operand).data);
  std::vector<void*> outputs = {memory_.at(parameter).data};
  for (const Memory& state : states) outputs.push_back(state.data);
  const Status status = kernels_.Run(*updated[0]->producer, inputs, outputs, context_, &pool_);
  while (!section->nodes.empty()) {
    for (const ir::Value* output : section->nodes.back()->outputs) memory_.erase(output);
    graph_.Erase(section->nodes.back());
  }
  return status.WithContext(parameter->name);
}

}  // namespace zg::eager
