// The op that fuse-elementwise makes: a chain of elementwise ops that runs over the data once.
#pragma once

namespace zg {

class OpRegistry;

void RegisterFusedElementwiseOp(OpRegistry& registry);

}  // namespace zg
