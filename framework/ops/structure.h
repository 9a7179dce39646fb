// Ops that give a graph its frame rather than compute: where values come from, where they go, how
// they lie in buckets.
#pragma once

namespace zg {

class OpRegistry;

void RegisterStructureOps(OpRegistry& registry);

}  // namespace zg
