// Every pass of the repository by name, for tools and for golden tests. A new pass gets a line here
// (zero, optim) or in framework/passes/register_passes.cc.
#pragma once

#include "framework/passes/pass_registry.h"

namespace zg {

void RegisterAllPasses(PassRegistry& registry);

}  // namespace zg
