// The graph as a picture: text for Graphviz (`dot -Tsvg`). One box per section, nodes coloured by
// the memory category of their outputs, edges labelled with type and placement.
#pragma once

#include <string>

#include "framework/ir/graph.h"

namespace zg::ir {

std::string PrintDot(const Graph& graph);

}  // namespace zg::ir
