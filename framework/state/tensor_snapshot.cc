#include "framework/state/tensor_snapshot.h"

#include <algorithm>
#include <cstring>

#include "framework/base/check.h"
#include "framework/state/tensor_state.h"

namespace zg {
namespace {

// Of what travels at once: every rank holds it several times.
constexpr int64_t kChunkElements = int64_t{1} << 18;

}  // namespace

StatusOr<TensorSnapshot> TensorSnapshot::Take(const Executor& executor) {
  const ir::Graph& graph = executor.graph();
  TensorSnapshot snapshot;
  for (const TensorRole role : {TensorRole::kParameter, TensorRole::kOptimizerState}) {
    for (const ir::StoredTensor* tensor : TensorsByName(graph, role)) {
      ZG_CHECK(tensor->type.dtype == DType::kF32, "{} is not in f32", tensor->name);
      const LocalPart local = executor.LocalPartOf(*tensor);
      const ShardPosition position =
          ShardPositionOf(graph.mesh(), tensor->storage->sbp, executor.communicator().rank());
      Part part;
      part.name = tensor->name;
      part.num_elements = tensor->type.shape.num_elements();
      part.begin = local.begin;
      part.values.resize(local.count);
      part.is_whole = position.num_parts == 1;
      part.is_first_copy = position.copy == 0;
      auto* const bytes = reinterpret_cast<std::byte*>(part.values.data());
      ZG_RETURN_IF_ERROR(
          ReadLocalElements(executor, *tensor, local.begin, local.count,
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
    if (!part.is_whole) {
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

// The parts follow each other in the order of the ranks.
Status TensorSnapshot::RestoreSplit(Executor& executor, const Part& part) const {
  const int64_t part_end = part.begin + static_cast<int64_t>(part.values.size());
  for (int64_t begin = 0; begin < part.num_elements; begin += kChunkElements) {
    const int64_t end = std::min(part.num_elements, begin + kChunkElements);
    const int64_t mine_begin = std::max(begin, part.begin);
    const int64_t mine_end = std::min(end, part_end);
    std::string mine;
    if (part.is_first_copy && mine_begin < mine_end) {
      mine.assign(reinterpret_cast<const char*>(part.values.data() + (mine_begin - part.begin)),
                  (mine_end - mine_begin) * sizeof(float));
    }
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        executor.communicator().Exchange("part of a tensor", mine));
    std::vector<float> chunk(end - begin);
    auto* target = reinterpret_cast<char*>(chunk.data());
    for (const std::string& bytes : all) {
      std::memcpy(target, bytes.data(), bytes.size());
      target += bytes.size();
    }
    ZG_CHECK(target == reinterpret_cast<char*>(chunk.data() + chunk.size()),
             "{}: the parts do not add up", part.name);
    ZG_RETURN_IF_ERROR(SetElements(
        executor, part.name, begin, end, [&](int64_t first, int64_t last, float* values) {
          std::copy_n(chunk.data() + (first - begin), last - first, values);
        }));
  }
  return Status::Ok();
}

}  // namespace zg
