// ForEachChunk: the values of a whole tensor, wherever its parts are, one chunk at a time, so that
// no rank needs memory for all of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/executor.h"

namespace zg {

// Elements [begin, begin + count) of the tensor, flat.
using ChunkVisitor = std::function<void(int64_t begin, const float* values, int64_t count)>;

// Visits the elements of a stored tensor in order. Every rank must call this, in the same order;
// every rank sees all of them. `purpose` names it in the errors of the communicator.
Status ForEachChunk(const Executor& executor, const ir::StoredTensor& tensor,
                    std::string_view purpose, const ChunkVisitor& visit);

// The same for `num_elements` elements of which this rank holds some, at `data`. `given` lists, by
// rank, the elements that each rank contributes: together all of them, each once.
Status ForEachChunk(const Executor& executor, const std::byte* data,
                    const std::vector<LocalElements>& given, int64_t num_elements,
                    std::string_view purpose, const ChunkVisitor& visit, DType dtype = DType::kF32);

// The elements of a stored tensor that each rank contributes: if several ranks hold the same ones,
// the first does.
std::vector<LocalElements> GivenElements(const ir::Graph& graph, const ir::StoredTensor& tensor);

// Elements [begin, end), assembled from the f32 values that the ranks contributed.
std::vector<float> PutTogether(const std::vector<std::string>& values,
                               const std::vector<LocalElements>& given, int64_t begin, int64_t end);

}  // namespace zg
