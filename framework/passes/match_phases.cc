#include "framework/passes/match_phases.h"

#include <map>
#include <numeric>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/passes/sixteen_bit_casts.h"

namespace zg {
namespace {

// A gradient of zeros, computed in the dtype in which other phases compute it.
ir::Value* Zeros(ir::Builder* backward, const ir::Value& parameter, DType dtype) {
  const Shape& shape = parameter.type.shape;
  ir::Value* zeros = backward->Op("constant", {}, {{"value", 0.0}}, "zero");
  if (dtype != DType::kF32) zeros = backward->Op("cast", {zeros}, {{"dtype", dtype}});
  if (shape.num_dims() > 0) {
    std::vector<int64_t> dims(shape.num_dims());
    std::iota(dims.begin(), dims.end(), 0);
    zeros = backward->Op("expand", {zeros}, {{"dims", dims}, {"sizes", shape.dims()}},
                         parameter.name + ".zeros");
  }
  return dtype == DType::kF32 ? zeros : backward->Op("cast", {zeros}, {{"dtype", DType::kF32}});
}

Status CheckAreThere(const ir::Graph& graph, const NeedsOfPhases& needs) {
  const auto find = [&](const std::string& name) {
    const ir::Value* const value = graph.FindValue(name);
    return value != nullptr && ir::HasRole(*value, Role::kParameter) ? value : nullptr;
  };
  for (const std::string& name : needs.trained) {
    const ir::Value* const parameter = find(name);
    if (parameter != nullptr && ir::IsTrainableParameter(*parameter)) continue;
    return InvalidArgument("graph {}: got '{}', expected trainable parameters of the graph",
                           graph.name(), name);
  }
  for (const std::string& name : needs.sixteen_bit) {
    if (find(name) != nullptr) continue;
    return InvalidArgument("graph {}: got '{}', expected parameters of the graph", graph.name(),
                           name);
  }
  return Status::Ok();
}

}  // namespace

StatusOr<bool> MatchPhases::Run(ir::Graph& graph) const {
  ZG_RETURN_IF_ERROR(CheckAreThere(graph, needs_));
  const std::vector<ir::Node*> marks = graph.NodesOf(ir::OpKind::kParameterGradient);
  std::map<const ir::Value*, ir::Value*> gradients;
  for (ir::Node* mark : marks) gradients[mark->inputs[0]] = mark->inputs[1];
  ir::Builder forward(&graph, graph.section(ir::SectionKind::kForward));
  ir::Builder backward(&graph, graph.section(ir::SectionKind::kBackward));
  bool changed = false;
  for (ir::Node* variable : graph.section(ir::SectionKind::kVariables)->nodes) {
    ir::Value* const parameter = variable->outputs[0];
    if (parameter->users.empty() && needs_.sixteen_bit.count(parameter->name) != 0) {
      forward.set_scope(variable->scope);
      forward.Op("cast", {parameter}, {{"dtype", needs_.dtype}});
      changed = true;
    }
    if (needs_.trained.count(parameter->name) == 0) continue;
    ir::Value*& gradient = gradients[parameter];
    if (gradient != nullptr) continue;
    changed = true;
    backward.set_scope(variable->scope);
    const bool is_rounded = !SixteenBitCastsOf(*parameter).empty();
    gradient = Zeros(&backward, *parameter, is_rounded ? needs_.dtype : DType::kF32);
    ZG_RETURN_IF_ERROR(forward.status());
    ZG_RETURN_IF_ERROR(backward.status());
  }
  if (!changed) return false;
  for (ir::Node* mark : marks) graph.Erase(mark);
  for (ir::Node* variable : graph.section(ir::SectionKind::kVariables)->nodes) {
    const auto gradient = gradients.find(variable->outputs[0]);
    if (gradient == gradients.end()) continue;
    backward.set_scope(variable->scope);
    backward.Ops("parameter_gradient", {variable->outputs[0], gradient->second});
  }
  ZG_RETURN_IF_ERROR(backward.status());
  return true;
}

}  // namespace zg
