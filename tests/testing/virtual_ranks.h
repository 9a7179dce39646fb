// Cuts a logical tensor into the parts of several ranks under a placement, and joins such parts
// again.
#pragma once

#include <random>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/sbp.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {

// Whether `sbp` can cut a tensor of this shape into equal parts.
bool Divides(const Shape& shape, Sbp sbp, int num_ranks);

// One tensor per rank, none sharing memory. The terms of a partial f32 value are random, and none
// of them is small; the terms of integers are parts of them, as of a count.
std::vector<HeapTensor> Cut(const HeapTensor& whole, Sbp sbp, int num_ranks, std::mt19937* random);

// The logical tensor. Error: parts of a broadcast value differ.
StatusOr<HeapTensor> Join(const std::vector<HeapTensor>& parts, Sbp sbp);

}  // namespace zg::testing
