// The boxing ops: changes of placement along one mesh axis. The logical value stays the same; only
// how it lies on the ranks changes. Insert-collectives makes them; the table is in
// framework/passes/boxing.h.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterCollectiveOps(ir::OpRegistry& registry);

}  // namespace zg
