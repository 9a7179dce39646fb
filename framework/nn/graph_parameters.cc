// Which of a graph's parameters are trained, and in which groups.
#include <fmt/format.h>

#include <algorithm>

#include "framework/base/listed.h"
#include "framework/nn/graph.h"
#include "framework/optim/replace_rules.h"

namespace zg {
namespace {

Status CheckPast(const optim::PastSteps& past) {
  if (past.steps < 0) {
    return InvalidArgument("past steps: got {}, expected the number of steps so far, or 0",
                           past.steps);
  }
  for (const auto& [group, skipped] : past.skipped) {
    if (skipped >= 0 && skipped <= past.steps) continue;
    return InvalidArgument("past steps: group '{}' skipped {}, expected 0 to all {}", group,
                           skipped, past.steps);
  }
  return Status::Ok();
}

}  // namespace

void Graph::Change(const std::string& what, const std::function<Status(Graph& graph)>& change) {
  Run(what, [&]() -> Status {
    if (!optimizer_.has_value())
      return FailedPrecondition("nothing is trained; call train() first");
    return InEveryVariant(change);
  });
}

StatusOr<std::vector<ir::Node*>> Graph::ParametersNamed(const std::string& patterns) const {
  ZG_ASSIGN_OR_RETURN(const std::vector<ScopePattern> parsed, ParseScopePatterns(patterns));
  std::vector<ir::Node*> named;
  for (const ScopePattern& pattern : parsed) {
    bool names_any = false;
    for (const ir::StoredTensor& tensor : ir_.tensors()) {
      if (!ir::HasRole(*tensor.storage, Role::kParameter)) continue;
      if (!MatchesAny({pattern}, tensor.name)) continue;
      named.push_back(tensor.storage->producer);
      names_any = true;
    }
    if (names_any) continue;
    std::vector<std::string> examples;
    for (const NamedParameter& parameter : named_parameters()) {
      if (examples.size() < 4) examples.push_back(parameter.name);
    }
    return NotFound("'{}' names no parameter of the graph; it has {}{}", pattern.text(),
                    fmt::join(examples, ", "), named_parameters().size() > 4 ? ", ..." : "");
  }
  return named;
}

void Graph::freeze(const std::string& parameters) {
  Change(fmt::format("freeze '{}'", parameters), [&](Graph& graph) -> Status {
    ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> named, graph.ParametersNamed(parameters));
    for (ir::Node* parameter : named) parameter->attributes.Set("trainable", false);
    return Status::Ok();
  });
}

void Graph::SetJoined(const std::string& parameter, int64_t updates_of_group, int64_t own) {
  joined_after_.erase(parameter);
  if (updates_of_group != own) joined_after_[parameter] = updates_of_group - own;
}

void Graph::unfreeze(const std::string& parameters, const optim::PastSteps& past) {
  Change(fmt::format("unfreeze '{}'", parameters), [&](Graph& graph) -> Status {
    ZG_RETURN_IF_ERROR(CheckPast(past));
    ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> named, graph.ParametersNamed(parameters));
    ZG_ASSIGN_OR_RETURN(const optim::UpdateRules rules, graph.update_rules());
    for (ir::Node* node : named) {
      const ir::Value& parameter = *node->outputs[0];
      if (ir::IsTrainableParameter(parameter)) continue;
      node->attributes.Set("trainable", true);
      graph.SetJoined(parameter.name, past.UpdatesOf(rules.GroupNameOf(parameter.name)), 0);
    }
    return Status::Ok();
  });
}

void Graph::add_parameter_group(const optim::ParameterGroup& group, const optim::PastSteps& past) {
  Change(fmt::format("parameter group '{}'", group.name), [&](Graph& graph) -> Status {
    ZG_RETURN_IF_ERROR(CheckPast(past));
    ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> named,
                        graph.ParametersNamed(group.parameters));
    ZG_ASSIGN_OR_RETURN(const optim::UpdateRules before, graph.update_rules());
    std::vector<optim::ParameterGroup> groups = graph.groups_;
    groups.push_back(group);
    ZG_RETURN_IF_ERROR(optim::MakeUpdateRules(*optimizer_, groups).status());
    graph.groups_ = std::move(groups);
    for (ir::Node* node : named) {
      const ir::Value& parameter = *node->outputs[0];
      int64_t own = 0;
      if (!group.optimizer.has_value() && ir::IsTrainableParameter(parameter)) {
        const auto joined = before.joined_after.find(parameter.name);
        own = past.UpdatesOf(before.GroupNameOf(parameter.name)) -
              (joined == before.joined_after.end() ? 0 : joined->second);
      }
      node->attributes.Set("trainable", true);
      graph.SetJoined(parameter.name, past.UpdatesOf(group.name), own);
    }
    return Status::Ok();
  });
}

std::set<std::string, std::less<>> Graph::NewlyTrained(const Graph& before) const {
  std::set<std::string, std::less<>> names;
  const StatusOr<optim::UpdateRules> then = before.update_rules(), now = update_rules();
  if (!then.ok() || !now.ok()) return names;
  for (const ir::StoredTensor& tensor : ir_.tensors()) {
    if (!ir::IsTrainableParameter(*tensor.storage)) continue;
    const ir::StoredTensor* const earlier = before.ir_.FindTensor(tensor.name);
    const bool was_trained = earlier != nullptr && ir::IsTrainableParameter(*earlier->storage);
    const int group = now->GroupOf(tensor.name);
    const bool is_moved = now->GroupNameOf(tensor.name) != then->GroupNameOf(tensor.name);
    if (!was_trained || (is_moved && group > 0 && groups_[group - 1].optimizer.has_value())) {
      names.insert(tensor.name);
    }
  }
  return names;
}

void Graph::set_optimizer(const optim::Optimizer& optimizer, const std::string& group) {
  const std::string what = group.empty() ? "optimizer" : fmt::format("optimizer of '{}'", group);
  Change(what, [&](Graph& graph) -> Status {
    ZG_ASSIGN_OR_RETURN(const optim::UpdateRules before, graph.update_rules());
    std::optional<optim::Optimizer> of_graph = graph.optimizer_;
    std::vector<optim::ParameterGroup> groups = graph.groups_;
    if (group.empty()) {
      of_graph = optimizer;
    } else {
      const auto named = std::find_if(groups.begin(), groups.end(),
                                      [&](const auto& other) { return other.name == group; });
      if (named == groups.end()) {
        std::vector<std::string> names;
        for (const optim::ParameterGroup& other : groups) names.push_back(other.name);
        return NotFound("there is no parameter group of this name; there are: {}", Listed(names));
      }
      named->optimizer = optimizer;
    }
    ZG_ASSIGN_OR_RETURN(const optim::UpdateRules after, optim::MakeUpdateRules(*of_graph, groups));
    ZG_RETURN_IF_ERROR(optim::CheckSameStates(before, after));
    graph.optimizer_ = std::move(of_graph);
    graph.groups_ = std::move(groups);
    return Status::Ok();
  });
}

StatusOr<optim::UpdateRules> Graph::update_rules() const {
  if (!optimizer_.has_value()) return FailedPrecondition("graph {}: nothing is trained", name());
  ZG_ASSIGN_OR_RETURN(optim::UpdateRules rules, optim::MakeUpdateRules(*optimizer_, groups_));
  rules.joined_after = joined_after_;
  return rules;
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto clone = std::make_unique<Graph>(name());
  clone->ir_ = ir_.Clone();
  clone->optimizer_ = optimizer_;
  clone->groups_ = groups_;
  clone->joined_after_ = joined_after_;
  clone->evals_ = evals_;
  clone->config_ = config_;
  clone->variant_ = variant_;
  for (const auto& other : other_variants_) clone->other_variants_.push_back(other->Clone());
  clone->status_ = status_;
  return clone;
}

}  // namespace zg
