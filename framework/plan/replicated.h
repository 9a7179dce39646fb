// ListReplicated: the parameters, gradients and optimizer states that every rank holds whole, and
// why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/ir/memory_category.h"
#include "framework/passes/compile_options.h"

namespace zg::plan {

struct Replicated {
  MemoryCategory category = MemoryCategory::kParameters;
  int64_t bytes = 0;
  std::string reason;
  // The parameters whose values, gradients or states these are, in the graph's order.
  std::vector<std::string> tensors;
};

// Takes a compiled graph. One entry per category and reason that occurs; none on one rank.
std::vector<Replicated> ListReplicated(const ir::Graph& graph, const ZeroOptions& zero);

}  // namespace zg::plan
