#include "framework/ops/update_states.h"

#include "framework/ops/op_names.h"

namespace zg {

StatesOf StatesOfUpdate(const ir::OpDef& update) {
  if (update.name == op_names::kFactoredUpdate) return StatesOf::kRowsAndColumns;
  if (update.name == op_names::kAdam8Update) return StatesOf::kBlocks;
  return StatesOf::kElements;
}

}  // namespace zg
