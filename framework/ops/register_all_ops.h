// Fills the op registry. Every program and test calls RegisterAllOps() before it builds a graph.
#pragma once

#include "framework/ir/op_registry.h"

namespace zg {

// Into OpRegistry::Global(), once; later calls do nothing. Any thread may call it.
void RegisterAllOps();

// The ops that compute, without those of structure and communication: what every device has kernels
// for and what the op suite covers.
void RegisterComputeOps(ir::OpRegistry& registry);

}  // namespace zg
