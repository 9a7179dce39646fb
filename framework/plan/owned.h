// SumOwned: how evenly whole tensors are spread over the ranks that own them.
#pragma once

#include "framework/ir/graph.h"
#include "framework/passes/compile_options.h"

namespace zg::plan {

struct Owned {
  int tensors = 0;
  int buckets = 0;
  // The maximum over ranks divided by the mean: in bytes, including the padding that every rank
  // has, and in floating-point operations of the updates.
  double bytes_imbalance = 1;
  double flops_imbalance = 1;
};

// Takes a compiled graph. Returns no tensors if ranks own none.
Owned SumOwned(const ir::Graph& graph, const ZeroOptions& zero);

}  // namespace zg::plan
