#include "framework/passes/step_mean.h"

#include "framework/ir/builder.h"

namespace zg {

StatusOr<ir::Value*> AppendStepMean(ir::Graph& graph, ir::Value* value, const StepMeanNames& names,
                                    ir::Node* before) {
  ir::Builder forward(&graph, graph.section(ir::SectionKind::kForward));
  if (before != nullptr) forward.InsertBefore(before);
  forward.set_scope(value->producer->scope);
  ir::Value* sum = forward.Storage(names.sum, {DType::kF32, value->type.shape}, Role::kAccumulator);
  ZG_RETURN_IF_ERROR(forward.status());
  ir::Value* next = forward.Op("accumulate", {sum, value}, {}, names.sum);
  forward.Ops("assign", {sum, next});
  ZG_RETURN_IF_ERROR(forward.status());
  ir::Builder update(&graph, graph.section(ir::SectionKind::kUpdate));
  const double factor = 1.0 / static_cast<double>(graph.micro_batches());
  ir::Value* mean = update.Op("scale", {sum}, {{"factor", factor}}, names.mean);
  ZG_RETURN_IF_ERROR(update.status());
  return mean;
}

}  // namespace zg
