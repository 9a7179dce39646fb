#include "framework/optim/replace_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "framework/ir/attribute.h"

namespace zg::optim {
namespace {

// The rule and those of matrices and of large tensors.
std::vector<const UpdateRule*> VariantsOf(const UpdateRule& rule) {
  std::vector<const UpdateRule*> variants = {&rule};
  for (const UpdateRule& variant : rule.of_matrices) variants.push_back(&variant);
  for (const UpdateRule& variant : rule.of_large) variants.push_back(&variant);
  return variants;
}

bool HasSameStates(const UpdateRule& a, const UpdateRule& b) {
  const auto same = [](const State& x, const State& y) {
    return x.name == y.name && x.of == y.of && x.dtype == y.dtype;
  };
  return a.op == b.op && a.counts == b.counts && a.large_elements == b.large_elements &&
         std::equal(a.states.begin(), a.states.end(), b.states.begin(), b.states.end(), same);
}

// The op and its hyperparameters, without traced programs.
std::string Summary(const UpdateRule& rule) {
  std::string text = rule.op;
  for (const auto& [name, value] : rule.attributes.items()) {
    if (name == "program" || name == "eval_program" || name == "results") continue;
    text += fmt::format(" {}={}", name, ir::ToString(value));
  }
  std::vector<std::string> states;
  for (const State& state : rule.states) states.push_back(state.name);
  return fmt::format("{} (states: {})", text, fmt::join(states, ", "));
}

Status CheckSameStates(const UpdateRule& before, const UpdateRule& after) {
  const std::vector<const UpdateRule*> then = VariantsOf(before);
  const std::vector<const UpdateRule*> now = VariantsOf(after);
  const bool is_same =
      std::equal(then.begin(), then.end(), now.begin(), now.end(),
                 [](const UpdateRule* a, const UpdateRule* b) { return HasSameStates(*a, *b); });
  if (is_same) return Status::Ok();
  return InvalidArgument(
      "got {}, expected other hyperparameters of {}, with the same states; parameters get another "
      "optimizer by add_parameter_group()",
      Summary(after), Summary(before));
}

int64_t GroupOf(const ir::Node& update) {
  return update.attributes.Has("group") ? update.attributes.Int("group") : 0;
}

bool HasAttributesOf(const ir::Node& update, const UpdateRule& rule) {
  const auto& items = rule.attributes.items();
  return update.op->name == rule.op &&
         std::all_of(items.begin(), items.end(), [&](const auto& item) {
           const auto found = update.attributes.items().find(item.first);
           return found != update.attributes.items().end() && found->second == item.second;
         });
}

// Eval sections are compiled from it as well.
const ir::Attribute* EvalProgramOf(const UpdateRule& rule) {
  const auto found = rule.attributes.items().find("eval_program");
  return found == rule.attributes.items().end() ? nullptr : &found->second;
}

// Nodes that measure norms for an update are made of its rule, too.
bool HasMeasures(const ir::Graph& graph) {
  for (const auto& section : graph.sections()) {
    for (const ir::Node* node : section->nodes) {
      if (node->op->traits.kind != ir::OpKind::kUpdate && node->attributes.Has("lr")) return true;
    }
  }
  return false;
}

bool IsInUpdateAlone(const UpdateRule& before, const UpdateRule& after) {
  const ir::Attribute* const then = EvalProgramOf(before);
  return then == nullptr || *then == *EvalProgramOf(after);
}

}  // namespace

Status CheckSameStates(const UpdateRules& before, const UpdateRules& after) {
  ZG_RETURN_IF_ERROR(CheckSameStates(before.rule, after.rule));
  for (size_t i = 0; i < before.groups.size(); ++i) {
    ZG_RETURN_IF_ERROR(CheckSameStates(before.groups[i].rule, after.groups[i].rule)
                           .WithContext("parameter group '" + before.groups[i].name + "'"));
  }
  return Status::Ok();
}

std::optional<std::vector<std::pair<ir::Node*, ir::Attributes>>> ReplaceRules(
    const ir::Graph& graph, const UpdateRules& before, const UpdateRules& after) {
  std::vector<std::pair<ir::Node*, ir::Attributes>> replaced;
  for (ir::Node* update : graph.NodesOf(ir::OpKind::kUpdate)) {
    const int group = static_cast<int>(GroupOf(*update));
    const std::vector<const UpdateRule*> then = VariantsOf(before.RuleOf(group));
    const std::vector<const UpdateRule*> now = VariantsOf(after.RuleOf(group));
    bool is_found = false;
    for (size_t i = 0; i < then.size() && !is_found; ++i) {
      is_found = HasAttributesOf(*update, *then[i]);
      if (!is_found || then[i]->attributes == now[i]->attributes) continue;
      if (!IsInUpdateAlone(*then[i], *now[i])) return std::nullopt;
      ir::Attributes attributes = update->attributes;
      for (const auto& [name, value] : now[i]->attributes.items()) attributes.Set(name, value);
      replaced.emplace_back(update, std::move(attributes));
    }
    if (!is_found) return std::nullopt;
  }
  if (!replaced.empty() && HasMeasures(graph)) return std::nullopt;
  return replaced;
}

}  // namespace zg::optim
