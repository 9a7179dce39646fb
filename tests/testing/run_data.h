// What a run on virtual ranks (ranked_run.h) begins with and is fed: contents that follow from a
// seed, names and micro-batches alone, so that ranks find the same in any number.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "framework/ir/graph.h"
#include "tests/testing/heap_tensor.h"
#include "tests/testing/virtual_mesh.h"

namespace zg::testing {

struct RunOptions {
  int steps = 2;
  unsigned seed = 1;  // of inputs, given values and initial contents of variables
  bool in_place = true;
  double gradient_factor = 1.0;  // what gradients count in updates
  // Stored tensors with other contents than those drawn from the seed.
  std::map<std::string, HeapTensor> tensors = {};
  std::set<std::string> watched = {};  // names of values to observe
};

// The contents that a stored tensor has before the first step.
HeapTensor InitialTensor(const ir::Graph& graph, const ir::StoredTensor& tensor,
                         const RunOptions& options);

// What every rank holds of a variable then: its tensors, or data of its own.
Parts InitialVariable(const ir::Graph& graph, const ir::Value& variable, const VirtualMesh& ranks,
                      const RunOptions& options);

// What every rank is fed in a micro-step for an `input` or `given` node.
Parts Feed(const ir::Node& node, const VirtualMesh& ranks, unsigned seed, int64_t step,
           int64_t micro_step);

}  // namespace zg::testing
