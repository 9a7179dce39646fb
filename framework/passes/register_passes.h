// The passes of the framework by name, for tools and tests.
#pragma once

#include "framework/passes/pass_registry.h"

namespace zg {

void RegisterPasses(PassRegistry& registry);

}  // namespace zg
