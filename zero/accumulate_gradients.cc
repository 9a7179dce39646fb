#include "zero/accumulate_gradients.h"

#include "framework/ir/builder.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// Rounds like a reduction without accumulation: the result does not depend on the number of ranks.
StatusOr<ir::Value*> RoundedSum(ir::Graph& graph, ir::Node* update, ir::Value* sum, DType dtype) {
  ir::Builder builder(&graph, update->section);
  builder.InsertBefore(update);
  ir::Value* rounded = builder.Op("cast", {sum}, {{"dtype", dtype}},
                                  fmt::format("{}.{}", sum->name, DTypeName(dtype)));
  ZG_RETURN_IF_ERROR(builder.status());
  return rounded;
}

// A value that an earlier run of the pass left: an accumulator, or its rounded value.
bool IsSum(const ir::Value& gradient) {
  const ir::Node& producer = *gradient.producer;
  const bool is_rounded = producer.op->traits.kind == ir::OpKind::kCast;
  return ir::IsVariable(is_rounded ? *producer.inputs[0] : gradient);
}

}  // namespace

StatusOr<bool> AccumulateGradients::Run(ir::Graph& graph) const {
  const int num_ranks = graph.mesh().num_data_ranks();
  if (graph.micro_batches() == num_ranks) return false;
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  const bool own_only = options_.reduce_once_per_step && num_ranks > 1;
  bool changed = false;
  for (ir::Node* update : updates) {
    ir::Value* gradient = update->inputs[1];
    if (IsSum(*gradient)) continue;
    ir::Builder backward(&graph, graph.section(ir::SectionKind::kBackward));
    ir::Value* sum = backward.Storage(gradient->name + ".sum", {DType::kF32, gradient->type.shape},
                                      Role::kGradient);
    ZG_RETURN_IF_ERROR(backward.status());
    sum->sbp = own_only ? gradient->sbp : ShardedSbp(graph, *update);
    if (num_ranks == 1 || own_only) backward.InsertBefore(graph.NextOf(gradient->producer));
    ir::Value* next = backward.Op("accumulate", {sum, gradient}, {}, sum->name);
    backward.Ops("assign", {sum, next});
    ZG_RETURN_IF_ERROR(backward.status());
    if (gradient->type.dtype != sum->type.dtype && !own_only) {
      ZG_ASSIGN_OR_RETURN(sum, RoundedSum(graph, update, sum, gradient->type.dtype));
    }
    graph.ReplaceInput(update, 1, sum);
    changed = true;
  }
  return changed;
}

}  // namespace zg::zero
