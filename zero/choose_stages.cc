#include "zero/choose_stages.h"

#include <fmt/format.h>

#include "framework/ir/scope_pattern.h"
#include "zero/flat_bucket.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// Which rule names which parameter.
class Chooser {
 public:
  explicit Chooser(const Stages& stages) : stages_(stages), is_used_(stages.rules.size()) {}

  Status Init() {
    for (const StageRule& rule : stages_.rules) {
      ZG_ASSIGN_OR_RETURN(ScopePattern pattern, ScopePattern::Parse(rule.pattern));
      patterns_.push_back(std::move(pattern));
    }
    return Status::Ok();
  }

  StatusOr<int> StageOf(const std::string& parameter) {
    const StageRule* chosen = nullptr;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (patterns_[i].ModuleOf(parameter).empty()) continue;
      const StageRule& rule = stages_.rules[i];
      is_used_[i] = true;
      if (chosen != nullptr && chosen->stage != rule.stage) {
        return InvalidArgument(
            "stage rule '{}': '{}' has another stage by the rule '{}'; expected one rule for each "
            "parameter",
            rule.ToString(), parameter, chosen->ToString());
      }
      chosen = &rule;
    }
    return chosen == nullptr ? stages_.otherwise : chosen->stage;
  }

  Status CheckAllUsed() const {
    for (size_t i = 0; i < is_used_.size(); ++i) {
      if (is_used_[i]) continue;
      return InvalidArgument(
          "stage rule '{}': no parameter has this name or lies in a module of this name",
          stages_.rules[i].ToString());
    }
    return Status::Ok();
  }

 private:
  const Stages& stages_;
  std::vector<ScopePattern> patterns_;
  std::vector<bool> is_used_;
};

}  // namespace

StatusOr<bool> ChooseStages::Run(ir::Graph& graph) const {
  if (graph.is_placed()) return false;
  Chooser chooser(stages_);
  ZG_RETURN_IF_ERROR(chooser.Init());
  std::vector<ir::Value*> parameters = FrozenVariables(graph);
  for (const ir::Node* update : UpdateNodes(graph)) parameters.push_back(update->inputs[0]);
  bool changed = false;
  for (ir::Value* parameter : parameters) {  // named like its tensor, until there are buckets
    ZG_ASSIGN_OR_RETURN(const int64_t stage, chooser.StageOf(parameter->name));
    ir::Attributes& attributes = parameter->producer->attributes;
    if (attributes.Int("stage") == stage) continue;
    attributes.Set("stage", stage);
    changed = true;
  }
  ZG_RETURN_IF_ERROR(chooser.CheckAllUsed());
  return changed;
}

}  // namespace zg::zero
