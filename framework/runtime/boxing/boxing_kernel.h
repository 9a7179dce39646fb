// Kernels of the boxing ops: collectives of the ranks along the node's mesh axes, and the local
// slices and copies that need the rank's coordinate. One file per op, each with the two functions
// of a BoxingOp; FindBoxingOp (boxing_kernel.cc) lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "framework/passes/plan_memory.h"
#include "framework/runtime/boxing/dim_view.h"

namespace zg {

// A boxing node as its kernel sees it.
struct BoxingNode {
  BoxingNode(const ir::Graph& graph, const ir::Node& node);

  const ir::Node& node;
  const Mesh& mesh;
  std::string name;   // of the result; names the collective
  TensorType input;   // local
  TensorType output;  // local
  bool has_accumulator = false;
  bool adds_pairwise = false;  // along an axis with fixed parts
  // The mesh axes that the node works along; for a sum those that split it and those that keep
  // whole copies, without axes of one rank.
  std::vector<int> axes;
  std::vector<int> split_axes;
  std::vector<int> copied_axes;

  ReductionTypes types() const {
    return {input.dtype, output.dtype, adds_pairwise ? FoldOrder::kPairwise : FoldOrder::kLeft};
  }
  int Dim(const char* attribute) const { return static_cast<int>(node.attributes.Int(attribute)); }
  int NumRanksAlong(const std::vector<int>& along) const;
};

// The data with which one rank makes a boxing kernel: the groups of its node, and its operands.
class BoxingContext {
 public:
  // The arena must be allocated for the plan. All arguments must outlive this. `in_thread`: the
  // kernels that move data run in a thread of their own.
  BoxingContext(const BoxingNode* node, const MemoryPlan* plan, Communicator* communicator,
                bool in_thread)
      : node_(*node), plan_(*plan), communicator_(*communicator), in_thread_(in_thread) {}

  const BoxingNode& node() const { return node_; }
  Device& device() const { return communicator_.device(); }
  int rank() const { return communicator_.rank(); }

  // The group of ranks along these axes, the last one varying fastest. Collective
  // (Communicator::GroupOf).
  StatusOr<Group*> GroupAlong(const std::vector<int>& axes) const;
  // This rank's position among them.
  PartOfDim PartAlong(const std::vector<int>& axes) const;

  // The location of a value on the ranks along these axes. Error: their parts are not equally
  // spaced.
  StatusOr<ArenaOperand> OperandOf(const ir::Value* value, const std::vector<int>& axes) const;
  // The node's workspace; at 0 if it has none.
  ArenaOperand Workspace() const;

 private:
  const BoxingNode& node_;
  const MemoryPlan& plan_;
  Communicator& communicator_;
  const bool in_thread_;
};

struct BoxingOp {
  // The workspace of the node, such as room to move a dim to the front.
  int64_t (*workspace_bytes)(const BoxingNode& node);
  // Every rank of the job makes its kernel at the same time, because the groups synchronise.
  StatusOr<std::unique_ptr<Kernel>> (*make)(const BoxingContext& context);
};

bool IsBoxing(const ir::Node& node);
int64_t BoxingWorkspaceBytes(const ir::Graph& graph, const ir::Node& node);

// All ranks run boxing kernels in the same order.
StatusOr<std::unique_ptr<Kernel>> MakeBoxingKernel(const ir::Graph& graph, const ir::Node& node,
                                                   const MemoryPlan& plan,
                                                   Communicator* communicator, bool in_thread);

BoxingOp AllReduceBoxing();
BoxingOp ReduceScatterBoxing();
BoxingOp AllGatherBoxing();
BoxingOp AllToAllBoxing();
BoxingOp LocalSliceBoxing();
BoxingOp LocalTermBoxing();

}  // namespace zg
