// The mean of a value over the micro-batches of a step.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg {

struct StepMeanNames {
  std::string sum;   // name of the accumulator
  std::string mean;  // name of the result
};

// Sums `value`, which the forward section computes for every micro-batch, in micro-batch order and
// in f32, before `before` or at the section's end. Returns the mean, which the update section
// computes. The mean is never null.
StatusOr<ir::Value*> AppendStepMean(ir::Graph& graph, ir::Value* value, const StepMeanNames& names,
                                    ir::Node* before = nullptr);

}  // namespace zg
