#include "framework/plan/explain_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "framework/base/enum_names.h"
#include "framework/ir/placement.h"
#include "framework/ir/scope_pattern.h"
#include "framework/passes/zero_stage.h"

namespace zg::plan {
namespace {

constexpr int kMaxNames = 8;       // in an error
constexpr size_t kShownSteps = 4;  // at each end of a long chain
constexpr std::string_view kAllValues = "all";

// "{S(0), B} -> {S(2)}": the placements of the node's operands along the axis.
std::string SignatureText(const ir::Node& node, int axis) {
  const auto list = [&](const std::vector<ir::Value*>& values) {
    std::vector<std::string> placements;
    for (const ir::Value* value : values) placements.push_back(value->sbp[axis].ToString());
    return fmt::format("{{{}}}", fmt::join(placements, ", "));
  };
  return list(node.inputs) + " -> " + list(node.outputs);
}

// Follows a value along one axis to the origin of its placement.
class Chain {
 public:
  Chain(const Program& program, int axis) : program_(program), axis_(axis) {}

  // One line for each step; if there are many, only the first and the last.
  std::string Of(const ir::Value* value) {
    while (value != nullptr) {
      lines_.push_back(fmt::format("      %{} is {}: ", value->name, Placement(*value)));
      value = Step(*value);
    }
    if (lines_.size() > 2 * kShownSteps + 1) {
      const auto first = lines_.begin() + kShownSteps;
      const auto last = lines_.end() - kShownSteps;
      const std::string left_out = fmt::format("      ... {} steps more\n", last - first);
      lines_.insert(lines_.erase(first, last), left_out);
    }
    return fmt::format("{}", fmt::join(lines_, ""));
  }

  // The chain's first step, without an end of line.
  std::string ReasonOf(const ir::Value& value) {
    lines_.emplace_back();
    Step(value);
    return lines_.back().substr(0, lines_.back().size() - 1);
  }

 private:
  std::string Placement(const ir::Value& value) const { return value.sbp[axis_].ToString(); }

  // Adds the reason for the value's placement. Returns the value that determined it, or null at the
  // end of the chain.
  const ir::Value* Step(const ir::Value& value) {
    const ir::Node& node = *value.producer;
    switch (node.op->traits.kind) {
      case ir::OpKind::kVariable:
        return End(ReasonOfVariable(value));
      case ir::OpKind::kInput:
        return End(fmt::format(
            "the input \"{}\" {}", node.attributes.String("name"),
            IsData() ? "has this placement" : "is the same for the ranks along the axis"));
      case ir::OpKind::kConstant:
        return End("a constant");
      case ir::OpKind::kView:
        return Next(*node.inputs[0], "a part of %" + node.inputs[0]->name);
      case ir::OpKind::kBoxing:
        return StepOfBoxing(node);
      default:
        return StepOfCompute(node);
    }
  }

  const ir::Value* StepOfBoxing(const ir::Node& node) {
    const std::vector<int> axes = ir::BoxingAxes(node);
    const ir::Value& from = *node.inputs[0];
    if (std::find(axes.begin(), axes.end(), axis_) == axes.end()) {
      return Next(from,
                  fmt::format("{} along another axis leaves it as %{}", node.op->name, from.name));
    }
    return Next(from, fmt::format("{} of %{}, which is {}, for {}", node.op->name, from.name,
                                  Placement(from), ReaderText(*node.outputs[0])));
  }

  // The reader that needs this placement.
  static std::string ReaderText(const ir::Value& value) {
    if (value.users.empty()) return "what reads it";
    const ir::Node& reader = *value.users[0];
    return fmt::format("{}{}", reader.op->name,
                       reader.scope.empty() ? "" : fmt::format(" of {}", reader.scope));
  }

  const ir::Value* StepOfCompute(const ir::Node& node) {
    const std::string signature = fmt::format("{} {}", node.op->name, SignatureText(node, axis_));
    for (const ir::Value* input : node.inputs) {
      if (!input->sbp[axis_].is_broadcast()) {
        return Next(*input, fmt::format("{}, as its input %{}", signature, input->name));
      }
    }
    if (!node.outputs[0]->sbp[axis_].is_broadcast()) {
      return End(signature + ": each rank computes it for its own micro-batch");
    }
    return End(signature + ": all that it is computed from is whole");
  }

  // ZeRO decides along data axes, and rules along others.
  std::string ReasonOfVariable(const ir::Value& variable) const {
    const Role role = ir::RoleOf(variable);
    if (variable.producer->attributes.Has("placement")) {
      return IsData() ? "a cache with this placement"
                      : "a cache, which lies as the rows that are written first";
    }
    if (!IsData()) return ReasonOfRules(variable);
    const int64_t stage = variable.producer->attributes.Int("stage");
    if (!variable.sbp[axis_].is_broadcast()) {
      return fmt::format("{}, which ZeRO shards at stage {}", EnumName(role), stage);
    }
    const int first = FirstStageThatShards(role);
    if (first > kLastStage) return fmt::format("{}, which ZeRO leaves whole", EnumName(role));
    if (stage < first) {
      return fmt::format("{}, which ZeRO shards from stage {} on, and this is {}", EnumName(role),
                         first, stage);
    }
    return fmt::format("{}, which is kept whole (small, or copies along this axis)",
                       EnumName(role));
  }

  std::string ReasonOfRules(const ir::Value& variable) const {
    for (const ir::StoredTensor& tensor : program_.graph.tensors()) {
      if (tensor.storage != &variable) continue;
      const std::string& name = tensor.copy_of.empty() ? tensor.name : tensor.copy_of;
      for (const PlacementRule& rule : program_.options.placement) {
        const bool is_meant = rule.of == PlacementRule::Of::kParameters &&
                              program_.graph.mesh().FindAxis(rule.axis) == axis_;
        const StatusOr<ScopePattern> pattern = ScopePattern::Parse(rule.pattern);
        if (is_meant && pattern.ok() && !pattern->ModuleOf(name).empty()) {
          return fmt::format("the rule '{}' of {}", rule.ToString(), name);
        }
      }
    }
    return variable.sbp[axis_].is_broadcast()
               ? fmt::format("{}, which no rule splits", EnumName(ir::RoleOf(variable)))
               : "as the parameters that it belongs to";
  }

  bool IsData() const { return program_.graph.mesh().IsDataAxis(axis_); }

  const ir::Value* End(const std::string& reason) {
    lines_.back() += reason + "\n";
    return nullptr;
  }
  const ir::Value* Next(const ir::Value& value, const std::string& reason) {
    lines_.back() += reason + "\n";
    return &value;
  }

  const Program& program_;
  const int axis_;
  std::vector<std::string> lines_;
};

Status NoSuchValue(const ir::Graph& graph, std::string_view name) {
  std::vector<std::string> near;
  for (const ir::Node* node : graph.AllNodes()) {
    for (const ir::Value* value : node->outputs) {
      const bool is_near = value->name.find(name) != std::string::npos;
      if (is_near && near.size() < kMaxNames) near.push_back("%" + value->name);
    }
  }
  return InvalidArgument("the program has no value %{}; {}", name,
                         near.empty() ? "`dump_directory` shows its values"
                                      : fmt::format("it has {}", fmt::join(near, ", ")));
}

const ir::Value* Find(const ir::Graph& graph, std::string_view name) {
  for (const ir::Node* node : graph.AllNodes()) {
    for (const ir::Value* value : node->outputs) {
      if (value->name == name) return value;
    }
  }
  return nullptr;
}

// "%loss: f32[] {P}".
std::string ValueText(const ir::Value& value) {
  return fmt::format("%{}: {} {}", value.name, value.type.ToString(), ToString(value.sbp));
}

std::string ScopeText(const ir::Value& value) {
  const std::string& scope = value.producer->scope;
  return scope.empty() ? "" : ", " + scope;
}

// "; data: the input "x" has this placement; tensor: ...", along axes of several ranks.
std::string ReasonsText(const Program& program, const ir::Value& value) {
  std::string text;
  const std::vector<MeshAxis>& axes = program.graph.mesh().axes();
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].size == 1) continue;
    text += fmt::format("; {}: {}", axes[axis].name,
                        Chain(program, static_cast<int>(axis)).ReasonOf(value));
  }
  return text;
}

std::string ExplainAll(const Program& program) {
  std::string text;
  for (const ir::Node* node : program.graph.AllNodes()) {
    for (const ir::Value* value : node->outputs) {
      text += ValueText(*value) + ScopeText(*value) + ReasonsText(program, *value) + "\n";
    }
  }
  return text;
}

}  // namespace

StatusOr<std::string> ExplainPlacement(const Program& program, std::string_view value) {
  if (value == kAllValues) return ExplainAll(program);
  if (!value.empty() && value.front() == '%') value.remove_prefix(1);
  const ir::Graph& graph = program.graph;
  const ir::Value* const found = Find(graph, value);
  if (found == nullptr) return NoSuchValue(graph, value);
  std::string text = ValueText(*found) + ScopeText(*found) + "\n";
  for (int axis = 0; axis < graph.mesh().num_axes(); ++axis) {
    const MeshAxis& mesh_axis = graph.mesh().axes()[axis];
    text +=
        fmt::format("  {}={}: {}\n", mesh_axis.name, mesh_axis.size, found->sbp[axis].ToString());
    if (mesh_axis.size > 1) text += Chain(program, axis).Of(found);
  }
  return text;
}

}  // namespace zg::plan
