// Adding a smaller tensor to every slice of a larger one, and the sum that is its gradient.
// Shapes: x (L..., R...), r (R...): r is added for every index of the leading dims L.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterBroadcastOps(ir::OpRegistry& registry);

}  // namespace zg
