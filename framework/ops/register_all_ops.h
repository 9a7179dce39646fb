// Fills the op registry. Every program and test calls RegisterAllOps() before it builds a graph.
#pragma once

namespace zg {

// Registers the families of families.inc in OpRegistry::Global(), once; later calls do nothing. Any
// thread may call it.
void RegisterAllOps();

}  // namespace zg
