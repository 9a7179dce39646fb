// SumOwned: how evenly whole tensors are spread over the ranks that own them.
#pragma once

#include "framework/ir/graph.h"
#include "framework/passes/compile_options.h"

namespace zg::plan {

struct Owned {
  int tensors = 0;
  int buckets = 0;
  // What the rank with most has, divided by the mean: of bytes with the padding that every rank has,
  // and of the updates' floating-point operations.
  double bytes_imbalance = 1;
  double flops_imbalance = 1;
};

// Of a compiled graph; no tensors where ranks own none.
Owned SumOwned(const ir::Graph& graph, const ZeroOptions& zero);

}  // namespace zg::plan
