// LocalElementsOf: the elements of a stored tensor on a rank, computed from the compiled graph
// alone.
//
// A tensor that no model axis splits is on a rank as a range of its elements: all of them, or those
// that ZeRO's cut through the flat storage leaves. If a model axis splits a tensor along a dim
// (StoredTensor::split), each rank of that axis has the rows of its own part, and the storage,
// which ZeRO cuts, holds these rows end to end:
//
//   (4, 6) split along dim 1 over 2 ranks, rank 0:   0 1 2   6 7 8   12 13 14   18 19 20
//   run = 3, stride = 6
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/ir/graph.h"

namespace zg {

struct LocalElements {
  int64_t begin = 0;           // index in the flat tensor of the first element on the rank
  int64_t count = 0;           // on the rank
  int64_t storage_offset = 0;  // offset at which they begin in the rank's part of the storage
  int64_t run = 0;             // so many are consecutive in the tensor; 0: all
  int64_t stride = 0;          // from the begin of one run to the begin of the next
  int64_t cut = 0;             // number of elements of the first run that precede `begin`

  bool is_range() const { return run == 0; }

  // The tensor element that the rank holds at index `local`.
  int64_t ElementAt(int64_t local) const {
    if (is_range()) return begin + local;
    return begin - cut + (local + cut) / run * stride + (local + cut) % run;
  }

  // The `count` elements on the rank from index `local` on.
  LocalElements Slice(int64_t local, int64_t slice_count) const {
    LocalElements slice = *this;
    slice.begin = ElementAt(local);
    slice.count = slice_count;
    slice.storage_offset += local;
    if (!is_range()) slice.cut = (local + cut) % run;
    return slice;
  }

  // The elements on the rank within [first, last) of the tensor; they are consecutive on the rank.
  LocalElements Within(int64_t first, int64_t last) const {
    const int64_t from = LocalAtOrAfter(first);
    return Slice(from, std::max<int64_t>(LocalAtOrAfter(last) - from, 0));
  }

  // Calls visit(element, local, length) for each run of elements that is also consecutive in the
  // tensor.
  template <typename Visit>
  void ForEachRun(const Visit& visit) const {
    for (int64_t local = 0; local < count;) {
      const int64_t length =
          is_range() ? count : std::min(count - local, run - (local + cut) % run);
      visit(ElementAt(local), local, length);
      local += length;
    }
  }

 private:
  // The number of elements on the rank before this element of the tensor.
  int64_t LocalAtOrAfter(int64_t element) const {
    int64_t local = element - begin;
    if (!is_range() && local > 0) {
      const int64_t from_first_run = element - (begin - cut);
      local = from_first_run / stride * run + std::min(from_first_run % stride, run) - cut;
    }
    return std::clamp<int64_t>(local, 0, count);
  }
};

LocalElements LocalElementsOf(const ir::Graph& graph, const ir::StoredTensor& tensor, int rank);

// A rank's position in a tensor: the part-th part along the mesh axis that splits the tensor,
// within it the shard-th shard of ZeRO's cut through the storage, and which of its copies.
struct StoredPosition {
  int64_t part = 0;
  int64_t shard = 0;
  int64_t copy = 0;
  int64_t num_parts = 1;
  int64_t num_shards = 1;
  int64_t num_copies = 1;
};
StoredPosition StoredPositionOf(const Mesh& mesh, const ir::StoredTensor& tensor, int rank);

// Whether every rank holds all elements.
bool IsWholeOnEveryRank(const ir::Graph& graph, const ir::StoredTensor& tensor);

}  // namespace zg
