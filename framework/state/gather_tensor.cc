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
StatusOr<std::vector<float>> GatherRange(Executor& executor, const ir::StoredTensor& tensor,
                                         std::string_view purpose, int64_t begin, int64_t end) {
  const LocalPart part = executor.LocalPartOf(tensor);
  const int64_t local_begin = std::max(begin, part.begin);
  const int64_t local_end = std::min(end, part.begin + part.count);
  std::string mine;
  const bool is_first_copy =
      ShardPositionOf(executor.graph().mesh(), tensor.storage->sbp, executor.communicator().rank())
          .copy == 0;
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
  for (const std::string& bytes : parts) {  // shards follow each other in rank order
    std::memcpy(target, bytes.data(), bytes.size());
    target += bytes.size();
  }
  ZG_CHECK(target == reinterpret_cast<char*>(values.data() + values.size()),
           "the shards of {} do not add up", tensor.name);
  return values;
}

}  // namespace

Status ForEachChunk(Executor& executor, const ir::StoredTensor& tensor, std::string_view purpose,
                    const ChunkVisitor& visit) {
  ZG_CHECK(tensor.type.dtype == DType::kF32, "{} is not in f32", tensor.name);
  const int64_t elements = tensor.type.shape.num_elements();
  const bool is_whole = executor.graph().LocalType(*tensor.storage) == tensor.storage->type;
  for (int64_t begin = 0; begin < elements; begin += kChunkElements) {
    const int64_t end = std::min(elements, begin + kChunkElements);
    if (is_whole) {
      std::vector<std::byte> scratch;
      ZG_ASSIGN_OR_RETURN(
          const std::byte* const data,
          executor.device().Read(executor.LocalPartOf(tensor).data + begin * kFloatBytes,
                                 (end - begin) * kFloatBytes, &scratch));
      visit(begin, reinterpret_cast<const float*>(data), end - begin);
      continue;
    }
    ZG_ASSIGN_OR_RETURN(const std::vector<float> values,
                        GatherRange(executor, tensor, purpose, begin, end));
    visit(begin, values.data(), end - begin);
  }
  return Status::Ok();
}

}  // namespace zg
