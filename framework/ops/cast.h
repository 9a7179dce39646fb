// cast: from one floating-point dtype to another.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterCastOp(ir::OpRegistry& registry);

}  // namespace zg
