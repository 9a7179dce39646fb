// ForEachChunk: the values of a whole tensor, wherever its parts are, a chunk at a time, so that no
// rank needs memory for all of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "framework/base/status.h"
#include "framework/runtime/executor.h"

namespace zg {

// Elements [begin, begin + count) of the tensor, flat.
using ChunkVisitor = std::function<void(int64_t begin, const float* values, int64_t count)>;

// Visits the elements of a stored f32 tensor in order. Every rank must call this, in the same
// order; every rank sees all of them. `purpose` names it in the errors of the communicator.
Status ForEachChunk(const Executor& executor, const ir::StoredTensor& tensor,
                    std::string_view purpose, const ChunkVisitor& visit);

// The same for `num_elements` f32 elements of which this rank holds a part. The parts follow each
// other in the order of the ranks. Ranks that hold the same part say so by `is_first_copy`, which
// is true on one of them.
Status ForEachChunk(const Executor& executor, const LocalPart& part, bool is_first_copy,
                    int64_t num_elements, std::string_view purpose, const ChunkVisitor& visit);

}  // namespace zg
