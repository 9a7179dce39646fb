#include "framework/state/tensor_snapshot.h"

#include <algorithm>
#include <cstring>

#include "framework/base/check.h"
#include "framework/state/gather_tensor.h"
#include "framework/state/tensor_state.h"

namespace zg {
namespace {

// Elements exchanged at once: every rank holds them several times.
constexpr int64_t kChunkElements = int64_t{1} << 18;

}  // namespace

StatusOr<TensorSnapshot> TensorSnapshot::Take(const Executor& executor) {
  const ir::Graph& graph = executor.graph();
  TensorSnapshot snapshot;
  for (const TensorRole role : {TensorRole::kParameter, TensorRole::kOptimizerState}) {
    for (const ir::StoredTensor* tensor : TensorsByName(graph, role)) {
      ZG_ASSIGN_OR_RETURN(const LocalPart local, executor.LocalPartOf(*tensor));
      Part part;
      part.name = tensor->name;
      part.num_elements = tensor->type.shape.num_elements();
      part.values.resize(local.count);
      if (!IsWholeOnEveryRank(graph, *tensor)) part.given = GivenElements(graph, *tensor);
      auto* const bytes = reinterpret_cast<std::byte*>(part.values.data());
      ZG_RETURN_IF_ERROR(
          ReadLocalValues(executor, *tensor, 0, local.count,
                          [&](uint64_t offset_bytes, const std::byte* data, size_t size_bytes) {
                            std::memcpy(bytes + offset_bytes, data, size_bytes);
                            return Status::Ok();
                          }));
      snapshot.parts_.push_back(std::move(part));
    }
  }
  return snapshot;
}

Status TensorSnapshot::Restore(Executor& executor,
                               const std::function<bool(std::string_view name)>& wanted) const {
  for (const Part& part : parts_) {
    if (executor.graph().FindTensor(part.name) == nullptr || !wanted(part.name)) continue;
    if (!part.given.empty()) {
      ZG_RETURN_IF_ERROR(RestoreSplit(executor, part));
      continue;
    }
    ZG_RETURN_IF_ERROR(SetElements(executor, part.name, 0, part.num_elements,
                                   [&](int64_t begin, int64_t end, float* values) {
                                     std::copy_n(part.values.data() + begin, end - begin, values);
                                   }));
  }
  return Status::Ok();
}

Status TensorSnapshot::RestoreSplit(Executor& executor, const Part& part) const {
  Communicator& communicator = executor.communicator();
  const LocalElements& mine = part.given[communicator.rank()];
  for (int64_t begin = 0; begin < part.num_elements; begin += kChunkElements) {
    const int64_t end = std::min(part.num_elements, begin + kChunkElements);
    const LocalElements given = mine.Within(begin, end);
    const float* const values = part.values.data() + (given.storage_offset - mine.storage_offset);
    ZG_ASSIGN_OR_RETURN(
        const std::vector<std::string> all,
        communicator.Exchange("part of a tensor",
                              std::string(reinterpret_cast<const char*>(values),
                                          given.count * static_cast<int64_t>(sizeof(float)))));
    const std::vector<float> chunk = PutTogether(all, part.given, begin, end);
    ZG_RETURN_IF_ERROR(SetElements(
        executor, part.name, begin, end, [&](int64_t first, int64_t last, float* target) {
          std::copy_n(chunk.data() + (first - begin), last - first, target);
        }));
  }
  return Status::Ok();
}

}  // namespace zg
