// Changes between steps to which parameters are trained, and how: the graph is changed, compiled
// again, and this rank's tensors move into the new program's memory.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "framework/optim/replace_rules.h"
#include "framework/state/tensor_snapshot.h"
#include "framework/train/trainer.h"

namespace zg {
namespace {

// One change out of a TrainState's "changes": "freeze 'blocks.*' after 20".
struct LoggedChange {
  std::string verb;
  std::string parameters;
  optim::PastSteps past;
};

constexpr std::string_view kBetweenChanges = "; ";
const std::string kGroupVerb = "group ";  // and its name

// "freeze 'blocks.*' after 20, of which 'head' skipped 5".
std::string ToText(const LoggedChange& change) {
  std::string text =
      fmt::format("{} '{}' after {}", change.verb, change.parameters, change.past.steps);
  for (const auto& [group, skipped] : change.past.skipped) {
    text += fmt::format(", of which '{}' skipped {}", group, skipped);
  }
  return text;
}

// None if the text is not of ToText.
std::optional<LoggedChange> ParseChange(const std::string& text) {
  const std::string after = "' after ", of_which = ", of which '", skipped = "' skipped ";
  const size_t open = text.find(" '"), close = text.find(after);
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  LoggedChange change = {text.substr(0, open), text.substr(open + 2, close - open - 2), {}};
  change.past.steps = std::atoll(text.c_str() + close + after.size());
  size_t at = close;
  while ((at = text.find(of_which, at)) != std::string::npos) {
    at += of_which.size();
    const size_t end = text.find(skipped, at);
    if (end == std::string::npos) return std::nullopt;
    change.past.skipped[text.substr(at, end - at)] =
        std::atoll(text.c_str() + end + skipped.size());
  }
  return change;
}

std::optional<std::vector<LoggedChange>> ParseChanges(std::string_view text) {
  std::vector<LoggedChange> changes;
  while (!text.empty()) {
    const size_t end = text.find(kBetweenChanges);
    const std::optional<LoggedChange> change = ParseChange(std::string(text.substr(0, end)));
    if (!change) return std::nullopt;
    changes.push_back(*change);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + kBetweenChanges.size());
  }
  return changes;
}

}  // namespace

Status Trainer::freeze(const std::string& parameters) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("freeze"));
  return Change("freeze", parameters,
                [&](Graph& graph, const optim::PastSteps&) { graph.freeze(parameters); });
}

Status Trainer::unfreeze(const std::string& parameters) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("unfreeze"));
  return Change("unfreeze", parameters, [&](Graph& graph, const optim::PastSteps& past) {
    graph.unfreeze(parameters, past);
  });
}

Status Trainer::add_parameter_group(const optim::ParameterGroup& group) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("add_parameter_group"));
  return Change(
      kGroupVerb + group.name, group.parameters,
      [&](Graph& graph, const optim::PastSteps& past) { graph.add_parameter_group(group, past); });
}

Status Trainer::Change(
    const std::string& verb, const std::string& parameters,
    const std::function<void(Graph& graph, const optim::PastSteps& past)>& apply) {
  optim::PastSteps past;
  ZG_RETURN_IF_ERROR(CheckSameChange(fmt::format("{} '{}'", verb, parameters), &past.steps));
  for (const auto& [group, skipped] : skipped_steps()) past.skipped[group] = skipped;
  std::unique_ptr<Graph> changed = graph_->Clone();
  apply(*changed, past);
  ZG_RETURN_IF_ERROR(changed->status());
  return Rebuild(std::move(changed),
                 (changes_.empty() ? "" : changes_ + std::string(kBetweenChanges)) +
                     ToText({verb, parameters, past}));
}

// `num_updates` becomes that of rank 0, which knows.
Status Trainer::CheckSameChange(const std::string& change, int64_t* num_updates) const {
  if (compile_ == nullptr) {
    return FailedPrecondition(
        "{}: the trainer has a program only; make it from a graph with make_trainer", change);
  }
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> of_ranks,
                      communicator_->Exchange("change of what is trained",
                                              fmt::format("{}\n{}", this->num_updates(), change)));
  for (size_t rank = 1; rank < of_ranks.size(); ++rank) {
    const auto change_of = [](const std::string& text) { return text.substr(text.find('\n') + 1); };
    if (change_of(of_ranks[rank]) == change_of(of_ranks[0])) continue;
    return InvalidArgument(
        "what is trained changes by {} on rank {}, but by {} on rank 0; make the "
        "same change on every rank",
        change_of(of_ranks[rank]), rank, change_of(of_ranks[0]));
  }
  *num_updates = std::atoll(of_ranks[0].c_str());
  return Status::Ok();
}

Status Trainer::set_optimizer(const optim::Optimizer& optimizer, const std::string& group) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("set_optimizer"));
  std::unique_ptr<Graph> changed;
  std::string change = "set_optimizer";
  if (graph_ != nullptr) {
    changed = graph_->Clone();
    changed->set_optimizer(optimizer, group);
    change = changed->status().message();
    const StatusOr<optim::UpdateRules> rules = changed->update_rules();
    if (change.empty() && rules.ok()) {
      for (const auto& [name, value] : rules->Settings()) change += name + ": " + value + "\n";
    }
  }
  int64_t num_updates = 0;
  ZG_RETURN_IF_ERROR(CheckSameChange(change, &num_updates));
  ZG_RETURN_IF_ERROR(changed->status());
  ZG_ASSIGN_OR_RETURN(const optim::UpdateRules before, graph_->update_rules());
  ZG_ASSIGN_OR_RETURN(const optim::UpdateRules after, changed->update_rules());
  ZG_ASSIGN_OR_RETURN(const bool is_replaced, ReplaceRules(before, after));
  if (!is_replaced) {
    return Rebuild(std::move(changed), changes_);
  }
  for (const auto& [name, value] : after.Settings()) {
    program_.settings[name] = value;
    settings_[name] = value;
  }
  program_.lr = after.ShownLr(program_.is_idle);
  for (Program& other : program_.other_variants) other.lr = after.ShownLr(other.is_idle);
  graph_ = std::move(changed);
  return Status::Ok();
}

StatusOr<bool> Trainer::ReplaceRules(const optim::UpdateRules& before,
                                     const optim::UpdateRules& after) {
  ZG_ASSIGN_OR_RETURN(bool is_replaced,
                      ReplaceRulesIn(program_.graph, before, after, executor_.get()));
  // The updates of all sizes are the same, and those of a group are in every phase that trains it.
  for (size_t i = 0; is_replaced && i < others_.size(); ++i) {
    ZG_ASSIGN_OR_RETURN(is_replaced, ReplaceRulesIn(program_.other_variants[i].graph, before, after,
                                                    others_[i].get()));
  }
  return is_replaced;
}

StatusOr<bool> Trainer::ReplaceRulesIn(const ir::Graph& graph, const optim::UpdateRules& before,
                                       const optim::UpdateRules& after, Executor* executor) {
  auto replaced = optim::ReplaceRules(graph, before, after);
  if (!replaced.has_value()) return false;
  std::vector<const ir::Node*> nodes;
  for (auto& [node, attributes] : *replaced) {
    std::swap(node->attributes, attributes);
    nodes.push_back(node);
  }
  StatusOr<bool> remade = executor->RemakeKernels(nodes, *kernels_);
  if (!remade.ok() || !*remade) {
    for (auto& [node, attributes] : *replaced) std::swap(node->attributes, attributes);
  }
  return remade;
}

Status Trainer::Rebuild(std::unique_ptr<Graph> graph, std::string changes) {
  AwaitSave();
  ZG_ASSIGN_OR_RETURN(Program program, compile_(*graph));
  ZG_ASSIGN_OR_RETURN(const TensorSnapshot snapshot, TensorSnapshot::Take(*executor_));
  ZG_ASSIGN_OR_RETURN(const TrafficCounters traffic, executor_->StepTraffic());
  ForgetExecutors();
  AddDifference({}, traffic, &traffic_before_changes_);
  std::swap(program_, program);  // `program` is now the previous one
  if (const Status status = MakeExecutors(); !status.ok()) {
    ForgetExecutors();
    std::swap(program_, program);
    ZG_RETURN_IF_ERROR(MakeExecutors());
    ZG_RETURN_IF_ERROR(snapshot.Restore(*executor_, [](std::string_view) { return true; }));
    return status;
  }
  const std::set<std::string, std::less<>> joined = graph->NewlyTrained(*graph_);
  ZG_RETURN_IF_ERROR(snapshot.Restore(*executor_, [&](std::string_view name) {
    const ir::StoredTensor* const tensor = program_.graph.FindTensor(name);
    const bool is_state = !IsOfModel(ir::RoleOf(*tensor->storage));
    return !is_state || joined.count(name.substr(0, name.rfind('.'))) == 0;
  }));
  for (const auto& [name, value] : program.settings) settings_.erase(name);
  for (const auto& [name, value] : program_.settings) settings_[name] = value;
  if (!changes.empty()) settings_["changes"] = changes;
  changes_ = std::move(changes);
  graph_ = std::move(graph);
  ++num_programs_;
  skipped_.resize(program_.group_names.size());
  if (save_memory_.data == nullptr) return Status::Ok();
  save_memory_ = SaveMemory();  // the slices differ
  return reserve_for_saving();
}

Status Trainer::RepeatChanges(const std::map<std::string, std::string>& settings,
                              const std::vector<optim::ParameterGroup>& groups) {
  const auto found = settings.find("changes");
  if (found == settings.end() || !changes_.empty() || compile_ == nullptr) return Status::Ok();
  const auto changes = ParseChanges(found->second);
  if (!changes) return Status::Ok();  // the comparison of settings reports a difference
  std::unique_ptr<Graph> changed = graph_->Clone();
  for (const LoggedChange& change : *changes) {
    if (change.verb == "freeze") {
      changed->freeze(change.parameters);
    } else if (change.verb == "unfreeze") {
      changed->unfreeze(change.parameters, change.past);
    } else {
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& given) {
        return kGroupVerb + given.name == change.verb && given.parameters == change.parameters;
      });
      if (group == groups.end()) {
        return InvalidArgument(
            "the run added the parameter {} of '{}' between steps; give it to resume()",
            change.verb, change.parameters);
      }
      changed->add_parameter_group(*group, change.past);
    }
  }
  ZG_RETURN_IF_ERROR(changed->status());
  return Rebuild(std::move(changed), found->second);
}

}  // namespace zg
