// A timeline as Chrome's trace events, the JSON that Perfetto and chrome://tracing open. A rank is
// a process with one lane that shows its steps and the nodes in them, and a counter of the planned
// memory in use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/ir/variant.h"
#include "framework/passes/plan_memory.h"
#include "framework/runtime/profile.h"

namespace zg {

// A program's steps on one rank.
struct TracedProgram {
  const ir::Graph* graph = nullptr;
  const MemoryPlan* plan = nullptr;
  const Timeline* timeline = nullptr;
  Variant variant = {};
};

// The events of one rank, one per line; the caller puts a comma between those of two ranks. Times
// are since `start_ns` on the timelines' clock.
std::string TraceEvents(const std::vector<TracedProgram>& programs, int rank, int64_t start_ns);

// The text of a file before and after the events of all ranks.
std::string TraceBegin(std::string_view model);
std::string TraceEnd();

}  // namespace zg
