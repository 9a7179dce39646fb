// LocalElementsOf: which elements of a stored tensor lie on a rank, from the compiled graph alone.
#pragma once

#include <cstdint>

#include "framework/ir/graph.h"

namespace zg {

// Elements [begin, begin + count) of the tensor, flat.
struct LocalElements {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t storage_offset = 0;  // element of the rank's part of the storage where they begin
};

LocalElements LocalElementsOf(const ir::Graph& graph, const ir::StoredTensor& tensor, int rank);

// Whether every rank holds all elements.
bool IsWholeOnEveryRank(const ir::Graph& graph, const ir::StoredTensor& tensor);

}  // namespace zg
