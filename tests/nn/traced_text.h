// The text of one section of a traced graph, for comparison with what a test expects.
#pragma once

#include <functional>
#include <string>

#include "framework/nn/nn.h"

namespace zg::nn {

// The node lines of a section ("forward", "variables", `eval "predict"`), without indentation.
std::string SectionText(const Graph& graph, const std::string& header);

// The nodes that `build` makes in an eval of a graph of its own, one per line, or its error.
std::string TracedText(const std::function<Outputs(Inputs&)>& build);

}  // namespace zg::nn
