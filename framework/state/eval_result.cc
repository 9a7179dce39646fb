#include "framework/state/eval_result.h"

#include <cstring>

#include "framework/state/gather_tensor.h"

namespace zg {
namespace {

// This rank's part of a result.
struct Part {
  const ir::Value* value = nullptr;
  LocalPart elements;
  bool is_whole = false;       // on every rank
  bool is_first_copy = false;  // of this part
};

StatusOr<Part> PartOf(const Executor& executor, std::string_view eval, std::string_view result) {
  ZG_ASSIGN_OR_RETURN(const Executor::LocalResult local, executor.Result(eval, result));
  const ir::Graph& graph = executor.graph();
  const TensorType& type = local.value->type;
  if (type.dtype != DType::kF32) {
    return InvalidArgument("graph {}, eval {}: the result \"{}\" is {}, expected f32", graph.name(),
                           eval, result, type.ToString());
  }
  const int64_t count = graph.LocalType(*local.value).shape.num_elements();
  const ShardPosition position =
      ShardPositionOf(graph.mesh(), local.value->sbp, executor.communicator().rank());
  Part part;
  part.value = local.value;
  part.elements = {position.part * count, count, const_cast<std::byte*>(local.data)};
  part.is_whole = position.num_parts == 1;
  part.is_first_copy = position.copy == 0;
  return part;
}

StatusOr<std::vector<float>> Read(const Executor& executor, const LocalPart& part) {
  std::vector<float> values(part.count);
  const int64_t bytes = part.count * static_cast<int64_t>(sizeof(float));
  std::vector<std::byte> scratch;
  ZG_ASSIGN_OR_RETURN(const std::byte* const data,
                      executor.device().Read(part.data, bytes, &scratch));
  if (bytes > 0) std::memcpy(values.data(), data, bytes);
  return values;
}

}  // namespace

StatusOr<std::vector<float>> ReadLocalResult(const Executor& executor, std::string_view eval,
                                             std::string_view result) {
  ZG_ASSIGN_OR_RETURN(const Part part, PartOf(executor, eval, result));
  return Read(executor, part.elements);
}

StatusOr<std::vector<float>> GatherResult(const Executor& executor, std::string_view eval,
                                          std::string_view result, int to) {
  const Communicator& communicator = executor.communicator();
  if (to < 0 || to >= communicator.size()) {
    return InvalidArgument("result \"{}\": got rank {}, expected one of 0 to {}", result, to,
                           communicator.size() - 1);
  }
  ZG_ASSIGN_OR_RETURN(const Part part, PartOf(executor, eval, result));
  if (part.is_whole) return Read(executor, part.elements);
  const bool is_target = communicator.rank() == to;
  std::vector<float> whole;
  if (is_target) whole.reserve(part.value->type.shape.num_elements());
  ZG_RETURN_IF_ERROR(ForEachChunk(executor, part.elements, part.is_first_copy,
                                  part.value->type.shape.num_elements(), "gather result",
                                  [&](int64_t, const float* values, int64_t count) {
                                    if (is_target)
                                      whole.insert(whole.end(), values, values + count);
                                  }));
  return whole;
}

}  // namespace zg
