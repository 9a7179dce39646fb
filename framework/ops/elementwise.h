// Arithmetic on tensors of equal shape, element by element.
#pragma once

namespace zg {

class OpRegistry;

void RegisterElementwiseOps(OpRegistry& registry);

}  // namespace zg
