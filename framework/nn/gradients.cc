#include "framework/nn/gradients.h"

#include <unordered_set>

#include "framework/ir/differentiate.h"
#include "framework/nn/functions.h"
#include "framework/nn/trace.h"
#include "framework/ops/op_names.h"

namespace zg {
namespace {

Status CheckSources(Var y, const std::vector<Var>& sources, const nn::Trace& trace) {
  ZG_RETURN_IF_ERROR(trace.CheckUsable(y));
  for (const Var& source : sources) ZG_RETURN_IF_ERROR(trace.CheckUsable(source));
  if (y.value()->type == TensorType{DType::kF32, Shape{}}) return Status::Ok();
  return InvalidArgument("got %{} {}, expected the scalar f32[]; take the sum", y.value()->name,
                         y.value()->type.ToString());
}

// The last nodes of a section, from the first one that computes a source on: what is before depends on
// none. A long loop that takes gradients in each round need not go through all rounds before.
std::vector<ir::Node*> NodesSince(const std::unordered_set<const ir::Value*>& sources,
                                  const std::vector<ir::Node*>& nodes) {
  size_t not_seen = sources.size();
  auto first = nodes.end();
  while (first != nodes.begin() && not_seen > 0) {
    --first;
    for (const ir::Value* output : (*first)->outputs) not_seen -= sources.count(output);
  }
  return {first, nodes.end()};
}

StatusOr<std::vector<Var>> AppendGradients(Var y, const std::vector<Var>& sources,
                                           nn::Trace& trace) {
  ZG_RETURN_IF_ERROR(CheckSources(y, sources, trace));
  ir::Builder& builder = trace.builder();
  std::unordered_set<const ir::Value*> wanted;
  for (const Var& source : sources) wanted.insert(source.value());
  const size_t num_before = builder.section()->nodes.size();
  const std::vector<ir::Node*> nodes = NodesSince(wanted, builder.section()->nodes);
  const std::unordered_set<const ir::Value*> needed = ir::DependingOn(nodes, wanted);
  const std::string scope = builder.scope();
  ir::Value* const seed = builder.Op("constant", {}, {{"value", 1.0}}, y.value()->name + ".grad");
  const auto found = ir::Differentiate(&builder, nodes, {{y.value(), seed}}, needed);
  builder.set_scope(scope);
  ZG_RETURN_IF_ERROR(found.status());
  const std::vector<Var> kept = trace.RunFrom(num_before);  // kept until the requested gradients
                                                            // are held
  std::vector<Var> gradients;
  for (const Var& source : sources) {
    const auto gradient = found->find(source.value());
    if (gradient == found->end() || gradient->second == nullptr) {
      return InvalidArgument("%{} does not depend on the source %{}", y.value()->name,
                             source.value()->name);
    }
    gradients.push_back(trace.Hold(gradient->second));
  }
  return gradients;
}

// A trainable parameter that y depends on without going through the inputs; null: none.
const ir::Value* ParameterBeside(const std::vector<Var>& inputs, Var y) {
  std::unordered_set<const ir::Value*> seen;
  for (const Var& input : inputs) seen.insert(input.value());
  std::vector<const ir::Value*> open;
  const auto add = [&](const ir::Value* value) {
    if (seen.insert(value).second) open.push_back(value);
  };
  add(y.value());
  while (!open.empty()) {
    const ir::Value* const value = open.back();
    open.pop_back();
    if (ir::IsTrainableParameter(*value)) return value;
    if (value->producer->op->traits.stops_gradient) continue;
    for (const ir::Value* input : value->producer->inputs) add(input);
  }
  return nullptr;
}

StatusOr<Var> WithGradient(const std::vector<Var>& inputs, Var y, Var dy,
                           const std::vector<Var>& gradients, nn::Trace& trace) {
  if (gradients.size() != inputs.size()) {
    return InvalidArgument("'backward' returned {} gradients, expected one for each of {} inputs",
                           gradients.size(), inputs.size());
  }
  std::vector<Var> operands = {y, dy};
  std::vector<Var> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (gradients[i].empty()) continue;
    ZG_RETURN_IF_ERROR(trace.CheckUsable(gradients[i]));
    if (gradients[i].shape() != inputs[i].shape()) {
      return InvalidArgument("'backward' returned {} for input {}, expected its shape, {}",
                             gradients[i].value()->type.ToString(), i,
                             inputs[i].value()->type.ToString());
    }
    operands.push_back(inputs[i]);
    given.push_back(gradients[i]);
  }
  if (given.empty()) return stop_gradient(y);
  operands.insert(operands.end(), given.begin(), given.end());
  return trace.Append("custom_gradient", operands);
}

}  // namespace

std::vector<Var> gradients(Var y, const std::vector<Var>& sources) {
  nn::Trace& trace = nn::Trace::Of("gradients");
  if (!trace.status().ok()) return std::vector<Var>(sources.size());
  StatusOr<std::vector<Var>> gradients = AppendGradients(y, sources, trace);
  if (gradients.ok()) return *gradients;
  trace.Fail(gradients.status().WithContext("gradients"));
  return std::vector<Var>(sources.size());
}

Var custom_gradient(const GradientInputs& inputs,
                    const std::function<Var(const GradientInputs& inputs)>& forward,
                    const std::function<std::vector<Var>(const GradientInputs& inputs, Var output,
                                                         Var output_gradient)>& backward) {
  nn::Trace& trace = nn::Trace::Of("custom_gradient");
  const auto fail = [&](const Status& status) {
    return trace.Fail(status.WithContext(op_names::kCustomGradient));
  };
  if (!forward || !backward) return fail(InvalidArgument("got an empty function"));
  for (const Var& input : inputs) {
    if (const Status usable = trace.CheckUsable(input); !usable.ok()) return fail(usable);
  }
  const Var y = forward(inputs);
  if (!trace.status().ok()) return Var();
  if (const Status usable = trace.CheckUsable(y); !usable.ok()) return fail(usable);
  if (const ir::Value* parameter = ParameterBeside(inputs, y); parameter != nullptr) {
    return fail(InvalidArgument(
        "'forward' reads %{}, which would get no gradient; make it an input, or take "
        "stop_gradient(...) of it",
        parameter->name));
  }
  const Var dy = stop_gradient(0.0 * y);  // any value: backward will put the gradient here
  const std::vector<Var> gradients = backward(inputs, y, dy);
  if (!trace.status().ok()) return Var();
  const StatusOr<Var> result = WithGradient(inputs, y, dy, gradients, trace);
  return result.ok() ? *result : fail(result.status());
}

}  // namespace zg
