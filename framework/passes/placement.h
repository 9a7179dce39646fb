// Which of its legal placements a node takes.
#pragma once

#include "framework/ir/graph.h"

namespace zg {

// The signature along one mesh axis that changes the placement of the fewest inputs, and of those
// the one that moves the fewest bytes; the first listed wins a tie. With `outputs`, only signatures
// that give these. Null-sized result (no inputs, no outputs) never happens: all-B is always legal
// unless `outputs` forbids it, which is our bug.
ir::SbpSignature ChooseSignature(const ir::Node& node, int axis, const Mesh& mesh,
                                 const std::vector<Sbp>* outputs = nullptr);

}  // namespace zg
