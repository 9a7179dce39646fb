// ShareVariables: gives the graphs of several training functions the parameters and buffers of all of
// them, in one order: that of their first use.
#pragma once

#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/nn/trace.h"

namespace zg::nn {

// What one function has traced.
struct Traced {
  ir::Graph* graph = nullptr;
  Trace::Variables* variables = nullptr;
};

// Error: two variables of one name.
Status ShareVariables(const std::vector<Traced>& functions);

}  // namespace zg::nn
