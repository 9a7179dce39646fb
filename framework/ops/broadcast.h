// Adding a smaller tensor to every slice of a larger one, and the sum that is its gradient.
// Shapes: x (L..., R...), r (R...): r is added for every index of the leading dims L.
#pragma once

namespace zg {

class OpRegistry;

void RegisterBroadcastOps(OpRegistry& registry);

}  // namespace zg
