// The models of //models as graphs for planning. Tracing them allocates no weights.
#pragma once

#include "framework/base/status.h"
#include "framework/nn/graph.h"
#include "tools/plan/plan_options.h"

namespace zg::plan {

// Traces the training program of the model, with the optimizer of its demo.
Status TraceModel(const PlanOptions& options, Graph* graph);

// "gpt: 48 layers, 25 heads, 1600 channels, context 1024, vocabulary 50257".
std::string DescribeModel(const PlanOptions& options);

// The pattern of the model's blocks, which hold most of its parameters and activations; empty if it
// has none.
std::string BlocksOf(const std::string& model);

}  // namespace zg::plan
