// The location of a stored tensor in the logical value of its variable.
#pragma once

#include "framework/ir/graph.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {

// Whether the variable is a bucket (parts, elements) of tensors that a mesh axis splits. Without
// placements nothing can be computed from one: each rank reads its own part.
bool IsInParts(const ir::Graph& graph, const ir::Value& variable);

// The tensor in `variable`, whose dtype it gets.
HeapTensor ReadTensor(const ir::StoredTensor& tensor, const HeapTensor& variable);
void WriteTensor(const ir::StoredTensor& tensor, const HeapTensor& contents, HeapTensor* variable);

}  // namespace zg::testing
