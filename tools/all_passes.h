// Every pass of the repository by name, for tools and for golden tests: those of the framework
// (framework/passes/register_passes.cc), those of ZeRO (zero/register_passes.cc), and append-update
// with the optimizers by name.
#pragma once

#include "framework/passes/pass_registry.h"

namespace zg {

void RegisterAllPasses(PassRegistry& registry);

}  // namespace zg
