#include "framework/state/step_result.h"

#include <cstring>
#include <string>

namespace zg {
namespace {

StatusOr<const OutputSlot*> FindResult(const Executor& executor, std::string_view result) {
  ZG_ASSIGN_OR_RETURN(const OutputSlot* slot, executor.Output(result));
  if (slot->result.type.dtype == DType::kF32) return slot;
  return InvalidArgument("graph {}: the result \"{}\" of training is {}, expected f32",
                         executor.graph().name(), result, slot->result.type.ToString());
}

void Append(const char* bytes, size_t size, std::vector<float>* values) {
  const size_t begin = values->size();
  values->resize(begin + size / sizeof(float));
  std::memcpy(values->data() + begin, bytes, size);
}

}  // namespace

StatusOr<std::vector<float>> ReadLocalStepResult(const Executor& executor,
                                                 std::string_view result) {
  ZG_ASSIGN_OR_RETURN(const OutputSlot* slot, FindResult(executor, result));
  std::vector<float> values;
  Append(reinterpret_cast<const char*>(slot->data.data()), slot->data.size(), &values);
  return values;
}

StatusOr<std::vector<float>> GatherStepResult(const Executor& executor, std::string_view result,
                                              int to) {
  Communicator& communicator = executor.communicator();
  if (to < 0 || to >= communicator.size()) {
    return InvalidArgument("result \"{}\": got rank {}, expected one of 0 to {}", result, to,
                           communicator.size() - 1);
  }
  ZG_ASSIGN_OR_RETURN(const OutputSlot* slot, FindResult(executor, result));
  const Mesh& mesh = executor.graph().mesh();
  if (!slot->result.is_of_micro_batch) return ReadLocalStepResult(executor, result);
  // Ranks that differ only along axes other than data axes hold the same values.
  const auto is_first = [&](int rank) {
    for (int axis = 0; axis < mesh.num_axes(); ++axis) {
      if (!mesh.IsDataAxis(axis) && mesh.Coordinate(rank, axis) != 0) return false;
    }
    return true;
  };
  std::vector<int> rank_of(mesh.num_data_ranks());
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (is_first(rank)) rank_of[mesh.DataIndex(rank)] = rank;
  }
  const int64_t part_bytes = slot->result.type.bytes();
  std::vector<float> whole;
  for (int64_t part = 0; part < slot->result.num_parts; ++part) {
    std::string mine;
    if (is_first(communicator.rank())) {
      mine.assign(reinterpret_cast<const char*>(slot->data.data()) + part * part_bytes, part_bytes);
    }
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        communicator.Exchange("gather result", mine));
    if (communicator.rank() != to) continue;
    for (const int rank : rank_of) Append(all[rank].data(), all[rank].size(), &whole);
  }
  return whole;
}

}  // namespace zg
