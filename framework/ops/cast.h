// cast: from one floating-point dtype to another.
#pragma once

namespace zg {

class OpRegistry;

void RegisterCastOp(OpRegistry& registry);

}  // namespace zg
