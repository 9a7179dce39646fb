// Activation functions, element by element, and their gradients.
#pragma once

namespace zg {

class OpRegistry;

void RegisterActivationOps(OpRegistry& registry);

}  // namespace zg
