// Arithmetic on tensors of equal shape, element by element.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterElementwiseOps(ir::OpRegistry& registry);

}  // namespace zg
