// The op that fuse-elementwise makes: a chain of elementwise ops that runs over the data once.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterFusedElementwiseOp(ir::OpRegistry& registry);

}  // namespace zg
