// The mean of a value over the micro-batches of a step.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg {

struct StepMeanNames {
  std::string sum;   // of the accumulator
  std::string mean;  // of the result
};

// Adds up `value`, which the forward section computes for every micro-batch, in the order of the
// micro-batches, in f32, before `before` or at the section's end. Returns the mean, which the update
// section computes; null has a status.
StatusOr<ir::Value*> AppendStepMean(ir::Graph& graph, ir::Value* value, const StepMeanNames& names,
                                    ir::Node* before = nullptr);

}  // namespace zg
