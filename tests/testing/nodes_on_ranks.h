// NodesOnRanks: the parts of a graph's values on virtual ranks, and the effect of a node on them. A
// node's operands are brought to the placements that it wants through the logical value; kernels
// compute on each rank's part. A sum over ranks is a left fold in rank order, in f32.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "tests/testing/run_data.h"
#include "tests/testing/virtual_mesh.h"

namespace zg::testing {

class NodesOnRanks {
 public:
  // All of these must outlive it. It uses the options seed, in_place and gradient_factor.
  NodesOnRanks(const ir::Graph& graph, const VirtualMesh& ranks, const RunOptions& options)
      : graph_(graph), ranks_(ranks), options_(options) {}

  // Nodes that run from now on belong to this step (the first is 1) and micro-step (the first is
  // 0).
  void GoTo(int64_t step, int64_t micro_step);

  bool Has(const ir::Value& value) const { return parts_.count(&value) != 0; }
  const Parts& PartsOf(const ir::Value& value) const { return parts_.at(&value); }
  void Set(const ir::Value& value, Parts parts) { parts_[&value] = std::move(parts); }

  // Any node that computes its outputs or changes their placement.
  Status Run(const ir::Node& node);
  // `assign`: its variable holds the value from now on.
  Status Assign(const ir::Node& node);

 private:
  Status Box(const ir::Node& node);
  bool FoldsRanks(const ir::Node& node) const;
  Status FoldInto(const ir::Node& node, int accumulator_index, int term_index);
  StatusOr<std::vector<NdSbp>> WantedPlacements(const ir::Node& node) const;
  bool MeasuresTensors(const ir::Node& node) const;
  Status Compute(const ir::Node& node);
  HeapTensor ViewOfPart(const ir::Node& node, const HeapTensor& bucket) const;
  HeapTensor PackedPart(const ir::Node& node, const Parts& inputs) const;
  StatusOr<std::vector<HeapTensor>> RunKernel(const ir::Node& node, std::vector<HeapTensor> inputs,
                                              int rank);
  void WriteInPlace(const ir::Node& node);

  const ir::Graph& graph_;
  const VirtualMesh& ranks_;
  const RunOptions& options_;
  int64_t micro_step_ = 0;
  StepContext step_;
  std::unordered_map<const ir::Value*, Parts> parts_;
};

}  // namespace zg::testing
