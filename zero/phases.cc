#include "zero/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "framework/ir/scope_pattern.h"
#include "framework/passes/build_backward.h"
#include "framework/passes/mixed_precision.h"
#include "framework/passes/module_patterns.h"
#include "framework/passes/sixteen_bit_casts.h"

namespace zg::zero {
namespace {

std::vector<const Graph*> PhasesOf(const Graph& graph) {
  std::vector<const Graph*> phases = {&graph};
  for (const auto& other : graph.other_variants()) phases.push_back(other.get());
  return phases;
}

Status CheckCountsApart(const CompileOptions& options) {
  if (options.one_count_setting() == nullptr) return Status::Ok();
  return InvalidArgument(
      "with {} all parameter groups share one count of updates, and phases update some of them; leave "
      "it out",
      options.one_count_setting());
}

// Patterns of modules, some of which a phase may not have.
class PatternsOfPhases {
 public:
  explicit PatternsOfPhases(const std::vector<std::string>& texts)
      : patterns_(PatternsOf(texts)), is_used_(patterns_.size()) {}

  std::vector<std::string> Of(const std::vector<ir::Section*>& sections) {
    std::vector<std::string> own;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (!CheckPatternsName({patterns_[i]}, sections).ok()) continue;
      own.push_back(patterns_[i].text());
      is_used_[i] = true;
    }
    return own;
  }

  Status CheckAllUsed() const {
    const auto unused = std::find(is_used_.begin(), is_used_.end(), false);
    if (unused == is_used_.end()) return Status::Ok();
    return InvalidArgument("the pattern '{}' matches no module of any phase",
                           patterns_[unused - is_used_.begin()].text());
  }

 private:
  std::vector<ScopePattern> patterns_;
  std::vector<bool> is_used_;
};

Status SetPatterns(const std::vector<const Graph*>& graphs, const CompileOptions& options,
                   std::vector<PhaseOptions>* phases) {
  PatternsOfPhases recompute(options.recompute), f32_modules(options.f32_modules);
  for (size_t i = 0; i < graphs.size(); ++i) {
    const ir::Graph& graph = graphs[i]->ir();
    std::vector<ir::Section*> computing = {graph.section(ir::SectionKind::kForward)};
    (*phases)[i].recompute = recompute.Of(computing);
    for (const auto& section : graph.sections()) {
      if (section->kind == ir::SectionKind::kEval) computing.push_back(section.get());
    }
    (*phases)[i].f32_modules = f32_modules.Of(computing);
  }
  ZG_RETURN_IF_ERROR(recompute.CheckAllUsed().WithContext("recompute"));
  return f32_modules.CheckAllUsed().WithContext("f32_modules");
}

// What the phase trains and reads by itself.
StatusOr<NeedsOfPhases> NeedsOfOne(const Graph& phase, DType dtype,
                                   const std::vector<std::string>& f32_modules) {
  NeedsOfPhases needs;
  ir::Graph graph = phase.ir().Clone();
  if (dtype != DType::kF32) {
    ZG_RETURN_IF_ERROR(MixedPrecision(dtype, PatternsOf(f32_modules)).Run(graph).status());
    for (const ir::Node* variable : graph.section(ir::SectionKind::kVariables)->nodes) {
      const ir::Value& value = *variable->outputs[0];
      if (ir::HasRole(value, Role::kParameter) && !SixteenBitCastsOf(value).empty()) {
        needs.sixteen_bit.insert(value.name);
      }
    }
  }
  ZG_RETURN_IF_ERROR(BuildBackward().Run(graph).status());
  for (const ir::Node* mark : graph.NodesOf(ir::OpKind::kParameterGradient)) {
    needs.trained.insert(mark->inputs[0]->name);
  }
  return needs;
}

// The groups that a phase updates, of those whose parameters the phases train.
StatusOr<std::set<int64_t>> GroupsOf(const Graph& phase, const optim::UpdateRules& rules,
                                     const std::set<std::string>& trained,
                                     const std::set<std::string>& trained_by_all) {
  std::map<int64_t, std::string> own, others;  // one parameter of each group
  for (const std::string& name : trained_by_all) {
    (trained.count(name) != 0 ? own : others).emplace(rules.GroupOf(name), name);
  }
  std::set<int64_t> groups;
  for (const auto& [group, name] : own) {
    groups.insert(group);
    const auto other = others.find(group);
    if (other == others.end()) continue;
    return InvalidArgument(
        "{} trains '{}' and not '{}', which are in one parameter group; give those that a phase trains "
        "groups of their own: graph.add_parameter_group({{\"name\", \"patterns\"}})",
        phase.variant().ToString(), name, other->second);
  }
  return groups;
}

}  // namespace

StatusOr<std::vector<PhaseOptions>> OptionsOfPhases(const Graph& graph,
                                                    const optim::UpdateRules& rules,
                                                    const CompileOptions& options) {
  ZG_RETURN_IF_ERROR(CheckCountsApart(options));
  const std::vector<const Graph*> graphs = PhasesOf(graph);
  std::vector<PhaseOptions> phases(graphs.size());
  ZG_RETURN_IF_ERROR(SetPatterns(graphs, options, &phases));
  std::vector<NeedsOfPhases> own;
  NeedsOfPhases all;
  all.dtype = options.dtype;
  for (size_t i = 0; i < graphs.size(); ++i) {
    StatusOr<NeedsOfPhases> needs = NeedsOfOne(*graphs[i], options.dtype, phases[i].f32_modules);
    ZG_RETURN_IF_ERROR(needs.status().WithContext(graphs[i]->variant().ToString()));
    all.trained.insert(needs->trained.begin(), needs->trained.end());
    all.sixteen_bit.insert(needs->sixteen_bit.begin(), needs->sixteen_bit.end());
    own.push_back(std::move(*needs));
  }
  for (size_t i = 0; i < graphs.size(); ++i) {
    phases[i].needs = all;
    ZG_ASSIGN_OR_RETURN(phases[i].groups, GroupsOf(*graphs[i], rules, own[i].trained, all.trained));
  }
  return phases;
}

}  // namespace zg::zero
