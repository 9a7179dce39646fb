#include "framework/state/gather_tensor.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "framework/base/check.h"
#include "framework/state/widened_values.h"

namespace zg {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 20;
constexpr int64_t kFloatBytes = sizeof(float);

// As f32.
StatusOr<std::vector<float>> ReadValues(const Executor& executor, const std::byte* data,
                                        DType dtype, int64_t first, int64_t count) {
  std::vector<std::byte> scratch;
  const int64_t element_bytes = SizeOf(dtype);
  ZG_ASSIGN_OR_RETURN(
      const std::byte* const read,
      executor.device().Read(data + first * element_bytes, count * element_bytes, &scratch));
  return WidenedValues(dtype, read, count);
}

// The part of elements [begin, end) that this rank contributes.
StatusOr<std::string> ReadGiven(const Executor& executor, const std::byte* data, DType dtype,
                                const LocalElements& given, int64_t begin, int64_t end) {
  const LocalElements mine = given.Within(begin, end);
  if (mine.count == 0) return std::string();
  const int64_t first = mine.storage_offset - given.storage_offset;
  ZG_ASSIGN_OR_RETURN(const std::vector<float> values,
                      ReadValues(executor, data, dtype, first, mine.count));
  return std::string(reinterpret_cast<const char*>(values.data()), mine.count * kFloatBytes);
}

}  // namespace

std::vector<LocalElements> GivenElements(const ir::Graph& graph, const ir::StoredTensor& tensor) {
  std::vector<LocalElements> given(graph.mesh().num_ranks());
  for (size_t rank = 0; rank < given.size(); ++rank) {
    if (StoredPositionOf(graph.mesh(), tensor, rank).copy != 0) continue;
    given[rank] = LocalElementsOf(graph, tensor, rank);
  }
  return given;
}

std::vector<float> PutTogether(const std::vector<std::string>& values,
                               const std::vector<LocalElements>& given, int64_t begin,
                               int64_t end) {
  std::vector<float> whole(end - begin);
  int64_t total = 0;
  for (size_t rank = 0; rank < given.size(); ++rank) {
    const LocalElements part = given[rank].Within(begin, end);
    ZG_CHECK(static_cast<int64_t>(values[rank].size()) == part.count * kFloatBytes,
             "rank {} gave {} bytes, expected {} elements", rank, values[rank].size(), part.count);
    total += part.count;
    part.ForEachRun([&](int64_t element, int64_t local, int64_t length) {
      std::memcpy(whole.data() + (element - begin), values[rank].data() + local * kFloatBytes,
                  length * kFloatBytes);
    });
  }
  ZG_CHECK(total == end - begin, "the parts do not add up");
  return whole;
}

Status ForEachChunk(const Executor& executor, const std::byte* data,
                    const std::vector<LocalElements>& given, int64_t num_elements,
                    std::string_view purpose, const ChunkVisitor& visit, DType dtype) {
  Communicator& communicator = executor.communicator();
  for (int64_t begin = 0; begin < num_elements; begin += kChunkElements) {
    const int64_t end = std::min(num_elements, begin + kChunkElements);
    ZG_ASSIGN_OR_RETURN(const std::string mine,
                        ReadGiven(executor, data, dtype, given[communicator.rank()], begin, end));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all, communicator.Exchange(purpose, mine));
    const std::vector<float> values = PutTogether(all, given, begin, end);
    visit(begin, values.data(), end - begin);
  }
  return Status::Ok();
}

Status ForEachChunk(const Executor& executor, const ir::StoredTensor& tensor,
                    std::string_view purpose, const ChunkVisitor& visit) {
  const DType dtype = tensor.type.dtype;
  const int64_t elements = tensor.type.shape.num_elements();
  ZG_ASSIGN_OR_RETURN(const LocalPart part, executor.LocalPartOf(tensor));
  if (!IsWholeOnEveryRank(executor.graph(), tensor)) {
    return ForEachChunk(executor, part.data, GivenElements(executor.graph(), tensor), elements,
                        purpose, visit, dtype);
  }
  for (int64_t begin = 0; begin < elements; begin += kChunkElements) {
    const int64_t count = std::min(elements - begin, kChunkElements);
    ZG_ASSIGN_OR_RETURN(const std::vector<float> values,
                        ReadValues(executor, part.data, dtype, begin, count));
    visit(begin, values.data(), count);
  }
  return Status::Ok();
}

}  // namespace zg
