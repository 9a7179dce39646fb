#include "framework/passes/micro_batch_values.h"

#include <algorithm>

namespace zg {

std::unordered_set<const ir::Value*> MicroBatchValues(const ir::Section& section) {
  std::unordered_set<const ir::Value*> found;
  for (const ir::Node* node : section.nodes) {
    const bool depends =
        node->op->traits.kind == ir::OpKind::kInput
            ? node->attributes.Sbp("placement") != Sbp::B()
            : node->op->traits.is_random ||
                  std::any_of(node->inputs.begin(), node->inputs.end(),
                              [&](const ir::Value* input) { return found.count(input) != 0; });
    if (depends) found.insert(node->outputs.begin(), node->outputs.end());
  }
  return found;
}

}  // namespace zg
