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

// Graphs that a pass changed and that were executed before and after it, by the pass's name.
struct PassCounts {
  std::map<std::string, int> executed;
  int wanted = 0;  // executed for each of them, at least

  bool IsEnough(const std::string& pass) const {
    const auto found = executed.find(pass);
    return found != executed.end() && found->second >= wanted;
  }
};

// What went wrong first, with the graph before it; empty when nothing did. Unless `counts` is null,
// executes and counts the graphs of passes of which there are not enough yet, and of no others.
std::string CheckPipeline(const RandomModelOptions& options, const PassRegistry& registry,
                          PassCounts* counts);

// The same, but calls `visit` instead of the check, with every pass that changed the graph, and the
// graphs before and after it, until it returns false. Error: a pass fails.
using PassVisitor =
    std::function<bool(std::string_view pass, const ir::Graph& before, const ir::Graph& after)>;
Status VisitPipeline(const RandomModelOptions& options, const PassRegistry& registry,
                     const PassVisitor& visit);

}  // namespace zg::testing
