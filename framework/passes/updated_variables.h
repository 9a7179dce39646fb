// Which variables an update changes.
#pragma once

#include "framework/ir/graph.h"

namespace zg {

// Whether a node assigns the variable. A parameter that none does is frozen.
bool IsUpdated(const ir::Value& variable);

}  // namespace zg
