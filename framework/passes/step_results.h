// What a step of a compiled graph hands out to the host: the loss and further results of training. They
// lie beside the arena, in host memory.
#pragma once

#include <cstdint>

#include "framework/ir/graph.h"

namespace zg {

struct StepResult {
  TensorType type;                 // of a part, on one rank
  bool is_of_micro_batch = false;  // else of the step
  int64_t num_parts = 1;           // one for each micro-batch of a rank

  int64_t bytes() const { return num_parts * type.bytes(); }
};

// The result that an output node of training hands out.
StepResult StepResultOf(const ir::Graph& graph, const ir::Node& output);

// The bytes of all results together, on one rank.
int64_t StepResultBytes(const ir::Graph& graph);

}  // namespace zg
