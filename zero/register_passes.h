// The passes of ZeRO by name, for tools and tests.
#pragma once

#include "framework/passes/pass_registry.h"

namespace zg::zero {

void RegisterPasses(PassRegistry& registry);

}  // namespace zg::zero
