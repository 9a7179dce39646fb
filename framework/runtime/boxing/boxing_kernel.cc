#include "framework/runtime/boxing/boxing_kernel.h"

#include <map>

#include "framework/base/check.h"
#include "framework/ops/op_names.h"

namespace zg {
namespace {

const std::map<std::string, BoxingOp>& BoxingOps() {
  static const std::map<std::string, BoxingOp> ops = {
      {op_names::kAllReduce, AllReduceBoxing()},
      {op_names::kReduceScatter, ReduceScatterBoxing()},
      {op_names::kAllGather, AllGatherBoxing()},
      {op_names::kAllToAll, AllToAllBoxing()},
      {op_names::kLocalSlice, LocalSliceBoxing()},
      {op_names::kLocalTerm, LocalTermBoxing()},
  };
  return ops;
}

}  // namespace

BoxingNode::BoxingNode(const ir::Graph& graph, const ir::Node& boxing)
    : node(boxing),
      mesh(graph.mesh()),
      name(boxing.outputs[0]->name),
      input(graph.LocalType(*boxing.inputs[0])),
      output(graph.LocalType(*boxing.outputs[0])),
      has_accumulator(boxing.inputs.size() == 2),
      axes(ir::BoxingAxes(boxing)) {
  for (const int axis : axes) {
    if (mesh.axes()[axis].size == 1) continue;
    // Sums of integers are exact in any order.
    adds_pairwise = adds_pairwise || (mesh.axes()[axis].has_fixed_parts() && IsFloat(input.dtype));
    const bool is_split = boxing.outputs[0]->sbp[axis].is_split();
    (is_split ? split_axes : copied_axes).push_back(axis);
  }
}

int BoxingNode::NumRanksAlong(const std::vector<int>& along) const {
  int product = 1;
  for (const int axis : along) product *= mesh.axes()[axis].size;
  return product;
}

StatusOr<Group*> BoxingContext::GroupAlong(const std::vector<int>& axes) const {
  return communicator_.GroupOf(node_.mesh.RanksAlong(rank(), axes), in_thread_);
}

PartOfDim BoxingContext::PartAlong(const std::vector<int>& axes) const {
  PartOfDim part;
  for (const int axis : axes) {
    const int size = node_.mesh.axes()[axis].size;
    part.index = part.index * size + node_.mesh.Coordinate(rank(), axis);
    part.count *= size;
  }
  return part;
}

StatusOr<ArenaOperand> BoxingContext::OperandOf(const ir::Value* value,
                                                const std::vector<int>& axes) const {
  const std::vector<int64_t>& strides = plan_.storage.Of(value).axis_stride_bytes;
  int64_t rank_stride = 0;
  int64_t group_size = 1;  // product of the axes that vary faster
  for (size_t i = axes.size(); i-- > 0;) {
    const int size = node_.mesh.axes()[axes[i]].size;
    const int64_t stride = strides.empty() ? 0 : strides[axes[i]];
    if (size == 1) continue;
    if (group_size == 1) rank_stride = stride;
    if (stride != rank_stride * group_size) {
      return FailedPrecondition(
          "{}: %{} lies {} bytes apart along axis {} of mesh({}), expected {}, as its parts are at "
          "equal distances along all axes that the node sums over",
          node_.node.op->name, value->name, stride, node_.mesh.axes()[axes[i]].name,
          node_.mesh.ToString(), rank_stride * group_size);
    }
    group_size *= size;
  }
  return ArenaOperand{plan_.OffsetOn(value, rank()) - PartAlong(axes).index * rank_stride,
                      rank_stride};
}

ArenaOperand BoxingContext::Workspace() const {
  const auto workspace = plan_.workspaces.find(&node_.node);
  if (workspace == plan_.workspaces.end()) return {};
  return {plan_.buffers[workspace->second].offset, 0};
}

bool IsBoxing(const ir::Node& node) { return node.op->traits.kind == ir::OpKind::kBoxing; }

int64_t BoxingWorkspaceBytes(const ir::Graph& graph, const ir::Node& node) {
  return BoxingOps().at(node.op->name).workspace_bytes(BoxingNode(graph, node));
}

StatusOr<std::unique_ptr<Kernel>> MakeBoxingKernel(const ir::Graph& graph, const ir::Node& node,
                                                   const MemoryPlan& plan,
                                                   Communicator* communicator, bool in_thread) {
  const BoxingNode boxing(graph, node);
  return BoxingOps().at(node.op->name).make(BoxingContext(&boxing, &plan, communicator, in_thread));
}

}  // namespace zg
