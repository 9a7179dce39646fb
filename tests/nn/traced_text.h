// The text of one section of a traced graph, to compare with a test's expectation.
#pragma once

#include <functional>
#include <string>

#include "framework/nn/nn.h"

namespace zg::nn {

// The node lines of a section ("forward", "variables", `eval "predict"`), without indentation.
std::string SectionText(const Graph& graph, const std::string& header);

// The nodes that `build` makes in an eval program of a separate graph, one per line, or its error.
std::string TracedText(const std::function<Outputs(Inputs&)>& build);

}  // namespace zg::nn
