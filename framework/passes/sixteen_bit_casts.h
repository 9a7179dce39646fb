// The casts through which a graph reads a parameter in 16 bits (mixed-precision).
#pragma once

#include <vector>

#include "framework/ir/graph.h"

namespace zg {

// The casts to one 16-bit type through which forward, backward and eval sections read the
// parameter; empty if any of them reads it in another dtype as well.
std::vector<ir::Node*> SixteenBitCastsOf(const ir::Value& parameter);

}  // namespace zg
