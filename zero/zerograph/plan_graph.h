// plan_graph: the memory, traffic and time that a graph needs at its ZeRO stage and at the others,
// without running it.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/plan/plan_report.h"
#include "zero/compile.h"

namespace zg {

struct PlanGraphOptions {
  std::string description;      // description of the model, for people; "": the graph's name
  plan::Machine machine;        // the machine that times are estimated for
  bool sends_messages = false;  // whether ranks talk by messages, which `overlap` auto asks for
  bool compare_stages = true;   // plan every stage, where there are ranks to share
  std::string explain;          // a value whose placement the report explains; "": none
};

// Leaves `config` in the report empty. Errors: those of zero::Compile.
StatusOr<plan::PlanReport> plan_graph(const Graph& graph, const Mesh& mesh,
                                      const CompileOptions& options, const Target& target,
                                      const PlanGraphOptions& plan_options = {});

}  // namespace zg
