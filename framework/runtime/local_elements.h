// LocalElementsOf: which elements of a stored tensor lie on a rank, from the compiled graph alone.
#pragma once

#include <cstdint>

#include "framework/ir/graph.h"

namespace zg {

struct LocalElements {
  int64_t begin = 0;  // of the tensor
  int64_t count = 0;
  int64_t storage_offset = 0;  // of the first one in the rank's part of the tensor's storage
};

LocalElements LocalElementsOf(const ir::Graph& graph, const ir::StoredTensor& tensor, int rank);

// Whether every rank holds all of it.
bool IsWholeOnEveryRank(const ir::Graph& graph, const ir::StoredTensor& tensor);

}  // namespace zg
