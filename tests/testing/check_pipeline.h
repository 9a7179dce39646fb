// Compiles a random model pass by pass and checks after each of them that nothing changed that the
// pass does not change on purpose.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "framework/passes/pass_registry.h"
#include "tests/testing/random_graph.h"

namespace zg::testing {

// What went wrong first, with the graph before it; empty when nothing did. Counts the graphs that
// each pass changed, and that were executed before and after it, in `counts` unless it is null.
std::string CheckPipeline(const RandomModelOptions& options, const PassRegistry& registry,
                          std::map<std::string, int>* counts);

// The same, but calls `visit` instead of the check, with every pass that changed the graph, and the
// graphs before and after it, until it returns false. Error: a pass fails.
using PassVisitor =
    std::function<bool(std::string_view pass, const ir::Graph& before, const ir::Graph& after)>;
Status VisitPipeline(const RandomModelOptions& options, const PassRegistry& registry,
                     const PassVisitor& visit);

}  // namespace zg::testing
