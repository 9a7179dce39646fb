#include "framework/state/gather_tensor.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "framework/base/check.h"

namespace zg {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 20;
constexpr int64_t kFloatBytes = sizeof(float);

// Those of elements [begin, end) that this rank gives.
StatusOr<std::string> ReadGiven(const Executor& executor, const std::byte* data,
                                const LocalElements& given, int64_t begin, int64_t end) {
  const LocalElements mine = given.Within(begin, end);
  if (mine.count == 0) return std::string();
  const int64_t bytes = mine.count * kFloatBytes;
  const int64_t offset_bytes = (mine.storage_offset - given.storage_offset) * kFloatBytes;
  std::vector<std::byte> scratch;
  ZG_ASSIGN_OR_RETURN(const std::byte* const values,
                      executor.device().Read(data + offset_bytes, bytes, &scratch));
  return std::string(reinterpret_cast<const char*>(values), bytes);
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
                    std::string_view purpose, const ChunkVisitor& visit) {
  Communicator& communicator = executor.communicator();
  for (int64_t begin = 0; begin < num_elements; begin += kChunkElements) {
    const int64_t end = std::min(num_elements, begin + kChunkElements);
    ZG_ASSIGN_OR_RETURN(const std::string mine,
                        ReadGiven(executor, data, given[communicator.rank()], begin, end));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all, communicator.Exchange(purpose, mine));
    const std::vector<float> values = PutTogether(all, given, begin, end);
    visit(begin, values.data(), end - begin);
  }
  return Status::Ok();
}

Status ForEachChunk(const Executor& executor, const ir::StoredTensor& tensor,
                    std::string_view purpose, const ChunkVisitor& visit) {
  ZG_CHECK(tensor.type.dtype == DType::kF32, "{} is not in f32", tensor.name);
  const int64_t elements = tensor.type.shape.num_elements();
  const LocalPart part = executor.LocalPartOf(tensor);
  if (!IsWholeOnEveryRank(executor.graph(), tensor)) {
    return ForEachChunk(executor, part.data, GivenElements(executor.graph(), tensor), elements,
                        purpose, visit);
  }
  for (int64_t begin = 0; begin < elements; begin += kChunkElements) {
    const int64_t count = std::min(elements - begin, kChunkElements);
    std::vector<std::byte> scratch;
    ZG_ASSIGN_OR_RETURN(
        const std::byte* const data,
        executor.device().Read(part.data + begin * kFloatBytes, count * kFloatBytes, &scratch));
    visit(begin, reinterpret_cast<const float*>(data), count);
  }
  return Status::Ok();
}

}  // namespace zg
