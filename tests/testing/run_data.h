// The initial contents and inputs of a run on virtual ranks (ranked_run.h). They follow only from a
// seed, names and micro-batches, so they are the same for any number of ranks.
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
  unsigned seed = 1;  // for inputs, given values and initial contents of variables
  bool in_place = true;
  double gradient_factor = 1.0;  // multiplies gradients in updates
  double noise = 0;  // the share by which floating-point data and contents may be off, at random
  // Stored tensors with other contents than those drawn from the seed.
  std::map<std::string, HeapTensor> tensors = {};
  std::set<std::string> watched = {};  // names of values to observe
};

// The contents that a stored tensor has before the first step.
HeapTensor InitialTensor(const ir::Graph& graph, const ir::StoredTensor& tensor,
                         const RunOptions& options);

// The initial part of a variable on every rank: its tensors, or data of its own.
Parts InitialVariable(const ir::Graph& graph, const ir::Value& variable, const VirtualMesh& ranks,
                      const RunOptions& options);

// The input of every rank in a micro-step for an `input` or `given` node.
Parts Feed(const ir::Node& node, const VirtualMesh& ranks, const RunOptions& options, int64_t step,
           int64_t micro_step);

}  // namespace zg::testing
