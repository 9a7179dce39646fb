// Activation functions, element by element, and their gradients.
#pragma once

#include <cstdint>

namespace zg {

namespace ir {
class OpRegistry;
}

// For each element.
inline constexpr int64_t kGeluFlops = 9;
inline constexpr int64_t kGeluGradFlops = 18;

void RegisterActivationOps(ir::OpRegistry& registry);

}  // namespace zg
