// Patterns of modules (ir/scope_pattern.h) held against the modules that a graph has.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/ir/scope_pattern.h"

namespace zg {

// All patterns of the texts, which CompileOptions::Resolve has checked.
std::vector<ScopePattern> PatternsOf(const std::vector<std::string>& texts);

// Error: a pattern that names no module of the sections; it lists those that there are.
Status CheckPatternsName(const std::vector<ScopePattern>& patterns,
                         const std::vector<ir::Section*>& sections);

}  // namespace zg
