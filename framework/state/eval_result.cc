#include "framework/state/eval_result.h"

#include <cstring>

#include "framework/state/gather_tensor.h"

namespace zg {
namespace {

// The part of the result on this rank.
StatusOr<Executor::LocalResult> Find(const Executor& executor, std::string_view eval,
                                     std::string_view result) {
  ZG_ASSIGN_OR_RETURN(const Executor::LocalResult local, executor.Result(eval, result));
  if (local.value->type.dtype == DType::kF32) return local;
  return InvalidArgument("graph {}, eval {}: the result \"{}\" is {}, expected f32",
                         executor.graph().name(), eval, result, local.value->type.ToString());
}

// The elements that each rank contributes: if several ranks hold the same ones, the first does.
std::vector<LocalElements> GivenElements(const ir::Graph& graph, const ir::Value& value) {
  const int64_t count = graph.LocalType(value).shape.num_elements();
  std::vector<LocalElements> given(graph.mesh().num_ranks());
  for (size_t rank = 0; rank < given.size(); ++rank) {
    const ShardPosition position = ShardPositionOf(graph.mesh(), value.sbp, rank);
    if (position.copy != 0) continue;
    given[rank].begin = position.part * count;
    given[rank].count = count;
  }
  return given;
}

StatusOr<std::vector<float>> Read(const Executor& executor, const Executor::LocalResult& local) {
  std::vector<float> values(executor.graph().LocalType(*local.value).shape.num_elements());
  const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(float));
  std::vector<std::byte> scratch;
  ZG_ASSIGN_OR_RETURN(const std::byte* const data,
                      executor.device().Read(local.data, bytes, &scratch));
  if (bytes > 0) std::memcpy(values.data(), data, bytes);
  return values;
}

}  // namespace

StatusOr<std::vector<float>> ReadLocalResult(const Executor& executor, std::string_view eval,
                                             std::string_view result) {
  ZG_ASSIGN_OR_RETURN(const Executor::LocalResult local, Find(executor, eval, result));
  return Read(executor, local);
}

StatusOr<std::vector<float>> GatherResult(const Executor& executor, std::string_view eval,
                                          std::string_view result, int to) {
  const Communicator& communicator = executor.communicator();
  if (to < 0 || to >= communicator.size()) {
    return InvalidArgument("result \"{}\": got rank {}, expected one of 0 to {}", result, to,
                           communicator.size() - 1);
  }
  ZG_ASSIGN_OR_RETURN(const Executor::LocalResult local, Find(executor, eval, result));
  const ir::Graph& graph = executor.graph();
  const TensorType& type = local.value->type;
  if (graph.LocalType(*local.value) == type) return Read(executor, local);
  const bool is_target = communicator.rank() == to;
  std::vector<float> whole;
  if (is_target) whole.reserve(type.shape.num_elements());
  ZG_RETURN_IF_ERROR(ForEachChunk(executor, local.data, GivenElements(graph, *local.value),
                                  type.shape.num_elements(), "gather result",
                                  [&](int64_t, const float* values, int64_t count) {
                                    if (is_target)
                                      whole.insert(whole.end(), values, values + count);
                                  }));
  return whole;
}

}  // namespace zg
