// ForEachChunk: the values of a whole tensor, wherever its parts are, a chunk at a time, so that no
// rank needs memory for all of it.
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

// Visits the elements of a stored tensor, in f32 or in u8, in order. Every rank must call this, in the same
// order; every rank sees all of them. `purpose` names it in the errors of the communicator.
Status ForEachChunk(const Executor& executor, const ir::StoredTensor& tensor,
                    std::string_view purpose, const ChunkVisitor& visit);

// The same for `num_elements` elements of which this rank holds some, at `data`. `given` says,
// by rank, which elements each one gives: together all of them, each once.
Status ForEachChunk(const Executor& executor, const std::byte* data,
                    const std::vector<LocalElements>& given, int64_t num_elements,
                    std::string_view purpose, const ChunkVisitor& visit, DType dtype = DType::kF32);

// Which elements of a stored tensor each rank gives: of ranks that hold the same ones, the first.
std::vector<LocalElements> GivenElements(const ir::Graph& graph, const ir::StoredTensor& tensor);

// Elements [begin, end), from the f32 values that each rank gave of them.
std::vector<float> PutTogether(const std::vector<std::string>& values,
                               const std::vector<LocalElements>& given, int64_t begin, int64_t end);

}  // namespace zg
