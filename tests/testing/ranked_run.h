// Runs a graph at any stage of its compilation, training steps and evals, on virtual ranks that
// take turns node by node. It has its own implementation of placements, so it is a reference for
// the passes and for the executor:
//
// - A graph without placements is the sequential program: one rank computes all micro-batches of a
//   step, one after the other.
// - `place`, collectives, and inputs with another placement than their reader wants are treated the
//   same way: the parts are joined to the logical value, which is cut again. Sums over ranks are
//   left folds in rank order, in f32.
// - A buffer with a `next_value` holds after the step the mean of those of the micro-batches, or
//   the value itself if all have the same.
// - What a run of an eval program leaves in caches, later programs find, each of the same micro-batch.
// - Where nothing accumulates gradients yet, one that the update section reads is its sum over the
//   step's micro-batches, in their order.
// - An update that needs values of whole tensors, and has not been given them yet (tensor-norms,
//   sum-factors), reads the logical values and is cut.
// - Outputs that must lie inside an input (AliasRule::kOutputInsideInput) do: a node that reads a
//   variable after its update sees the new one. Or they do not (RunOptions::in_place): only an
//   assignment changes a variable. A correct graph means the same in both.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "tests/testing/heap_tensor.h"
#include "tests/testing/run_data.h"

namespace zg::testing {

// One value at one point of the run.
struct Observation {
  HeapTensor logical;
  Sbp placement = Sbp::B();       // along the axis "data"
  std::vector<HeapTensor> parts;  // by data rank, whole along the other axes
};

// The observations of a run, in the order in which they happened:
//   "output NAME"            of the update section
//   "forward output NAME", "eval SECTION output NAME"   per micro-batch of a rank
//   "tensor NAME"            after every step
//   "variable NAME"          one without tensors, likewise
//   "gradient NAME"          of a stored tensor, as its update or parameter_gradient reads it
//   "value NAME"             one of RunOptions::watched, each time it is computed
using Observations = std::map<std::string, std::vector<Observation>>;

// Whether the graph can be executed: not between bucketing and infer-sbp if a bucket holds tensors
// that a mesh axis splits.
bool IsRunnable(const ir::Graph& graph);

// Errors: a kernel's rejection, ranks that hold different values of a broadcast value, placements
// that no signature of a node has.
StatusOr<Observations> RunOnRanks(const ir::Graph& graph, const RunOptions& options);

}  // namespace zg::testing
