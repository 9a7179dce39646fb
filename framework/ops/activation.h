// Activation functions, element by element, and their gradients.
#pragma once

#include <cstdint>

namespace zg {

class OpRegistry;

// For each element.
inline constexpr int64_t kGeluFlops = 9;
inline constexpr int64_t kGeluGradFlops = 18;

void RegisterActivationOps(OpRegistry& registry);

}  // namespace zg
