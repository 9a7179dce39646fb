// Ops that give a graph its frame rather than compute: where values come from, where they go, how
// they lie in buckets.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterStructureOps(ir::OpRegistry& registry);

}  // namespace zg
