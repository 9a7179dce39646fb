// A timeline as Chrome's trace events, the JSON that Perfetto and chrome://tracing open. A rank is a
// process with one lane: steps, in them what ran, and the planned memory that was in use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/ir/graph.h"
#include "framework/passes/plan_memory.h"
#include "framework/runtime/profile.h"

namespace zg {

// The events of one rank, one per line; there must be a comma between those of two ranks. Times are
// since `start_ns` of the timeline's clock.
std::string TraceEvents(const ir::Graph& graph, const MemoryPlan& plan, const Timeline& timeline,
                        int rank, int64_t start_ns);

// What stands in a file before and behind the events of all ranks.
std::string TraceBegin(std::string_view model);
std::string TraceEnd();

}  // namespace zg
