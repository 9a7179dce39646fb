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

// Elements [begin, end) from all ranks that hold a part of them, on every rank.
StatusOr<std::vector<float>> GatherRange(const Executor& executor, const LocalPart& part,
                                         bool is_first_copy, std::string_view purpose,
                                         int64_t begin, int64_t end) {
  const int64_t local_begin = std::max(begin, part.begin);
  const int64_t local_end = std::min(end, part.begin + part.count);
  std::string mine;
  if (is_first_copy && local_end > local_begin) {
    const int64_t bytes = (local_end - local_begin) * kFloatBytes;
    std::vector<std::byte> scratch;
    ZG_ASSIGN_OR_RETURN(const std::byte* const data,
                        executor.device().Read(part.data + (local_begin - part.begin) * kFloatBytes,
                                               bytes, &scratch));
    mine.assign(reinterpret_cast<const char*>(data), bytes);
  }
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                      executor.communicator().Exchange(purpose, mine));
  std::vector<float> values(end - begin);
  char* target = reinterpret_cast<char*>(values.data());
  for (const std::string& bytes : parts) {
    std::memcpy(target, bytes.data(), bytes.size());
    target += bytes.size();
  }
  ZG_CHECK(target == reinterpret_cast<char*>(values.data() + values.size()),
           "{}: the parts do not add up", purpose);
  return values;
}

}  // namespace

Status ForEachChunk(const Executor& executor, const LocalPart& part, bool is_first_copy,
                    int64_t num_elements, std::string_view purpose, const ChunkVisitor& visit) {
  for (int64_t begin = 0; begin < num_elements; begin += kChunkElements) {
    const int64_t end = std::min(num_elements, begin + kChunkElements);
    ZG_ASSIGN_OR_RETURN(const std::vector<float> values,
                        GatherRange(executor, part, is_first_copy, purpose, begin, end));
    visit(begin, values.data(), end - begin);
  }
  return Status::Ok();
}

Status ForEachChunk(const Executor& executor, const ir::StoredTensor& tensor,
                    std::string_view purpose, const ChunkVisitor& visit) {
  ZG_CHECK(tensor.type.dtype == DType::kF32, "{} is not in f32", tensor.name);
  const int64_t elements = tensor.type.shape.num_elements();
  const LocalPart part = executor.LocalPartOf(tensor);
  const ShardPosition position =
      ShardPositionOf(executor.graph().mesh(), tensor.storage->sbp, executor.communicator().rank());
  if (position.num_parts > 1) {
    return ForEachChunk(executor, part, position.copy == 0, elements, purpose, visit);
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
