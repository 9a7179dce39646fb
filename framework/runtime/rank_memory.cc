#include "framework/runtime/rank_memory.h"

namespace zg {

Operand RankMemory::OperandOf(const ir::Value* value) const {
  const int64_t begin = plan_->OffsetOn(value, rank_);
  return {plan_->storage.Of(value).buffer, begin, begin + graph_->LocalType(*value).bytes()};
}

Operand RankMemory::WholeBuffer(int buffer) const {
  const PlannedBuffer& planned = plan_->buffers[buffer];
  return {buffer, planned.offset, planned.offset + planned.bytes};
}

LocalPart RankMemory::PartOf(const ir::StoredTensor& tensor) const {
  const LocalElements elements = LocalElementsOf(*graph_, tensor, rank_);
  if (elements.count == 0) return {};
  return {elements,
          AddressOf(tensor.storage) + elements.storage_offset * SizeOf(tensor.type.dtype)};
}

}  // namespace zg
