#include "framework/passes/module_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace zg {
namespace {

constexpr size_t kMaxModulesListed = 8;

// The modules with `num_parts` parts, in the order of their nodes; all outermost ones when none has so
// many.
std::string ListModules(const std::vector<ir::Section*>& sections, int num_parts) {
  std::vector<std::string_view> modules;
  for (const ir::Section* section : sections) {
    for (const ir::Node* node : section->nodes) {
      const std::string_view module = ScopePrefix(node->scope, num_parts);
      if (module.empty() || std::find(modules.begin(), modules.end(), module) != modules.end())
        continue;
      modules.push_back(module);
    }
  }
  if (modules.empty()) return num_parts > 1 ? ListModules(sections, 1) : "none";
  const size_t rest = modules.size() - std::min(modules.size(), kMaxModulesListed);
  modules.resize(modules.size() - rest);
  return fmt::format("{}{}", fmt::join(modules, ", "),
                     rest > 0 ? fmt::format(" and {} more", rest) : "");
}

}  // namespace

std::vector<ScopePattern> PatternsOf(const std::vector<std::string>& texts) {
  std::vector<ScopePattern> modules;
  for (const std::string& text : texts) {
    const std::vector<ScopePattern> patterns = ParseScopePatterns(text).value();
    modules.insert(modules.end(), patterns.begin(), patterns.end());
  }
  return modules;
}

Status CheckPatternsName(const std::vector<ScopePattern>& patterns,
                         const std::vector<ir::Section*>& sections) {
  for (const ScopePattern& pattern : patterns) {
    const auto has_node_of = [&](const ir::Section* section) {
      return std::any_of(section->nodes.begin(), section->nodes.end(), [&](const ir::Node* node) {
        return !pattern.ModuleOf(node->scope).empty();
      });
    };
    if (std::any_of(sections.begin(), sections.end(), has_node_of)) continue;
    return InvalidArgument("the pattern '{}' matches no module; there are: {}", pattern.text(),
                           ListModules(sections, pattern.num_parts()));
  }
  return Status::Ok();
}

}  // namespace zg
