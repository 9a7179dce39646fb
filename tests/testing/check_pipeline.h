// Compiles a random model pass by pass and checks after each pass that it changed nothing except
// what it is supposed to change.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "framework/passes/pass_registry.h"
#include "tests/testing/random_graph.h"

namespace zg::testing {

// The number of graphs that a pass changed and that were executed before and after it, by the
// pass's name.
struct PassCounts {
  std::map<std::string, int> executed;
  int wanted = 0;  // minimum number of executions for each of them

  bool IsEnough(const std::string& pass) const {
    const auto found = executed.find(pass);
    return found != executed.end() && found->second >= wanted;
  }
};

// The first failure, with the graph before it; empty if there is none. Unless `counts` is null,
// executes and counts only the graphs of passes of which there are not enough yet.
std::string CheckPipeline(const RandomModelOptions& options, const PassRegistry& registry,
                          PassCounts* counts);

// The same, but calls `visit` instead of the check, with every pass that changed the graph, and the
// graphs before and after it, until it returns false. Error: a pass fails.
using PassVisitor =
    std::function<bool(std::string_view pass, const ir::Graph& before, const ir::Graph& after)>;
Status VisitPipeline(const RandomModelOptions& options, const PassRegistry& registry,
                     const PassVisitor& visit);

}  // namespace zg::testing
