#include "framework/runtime/anomaly.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/passes/scale_loss.h"
#include "framework/runtime/non_finite.h"

namespace zg {
namespace {

bool MayOverflow(const ir::Graph& graph, const ir::Node& node) {
  if (graph.FindTensor(kLossScaler) == nullptr || node.op->traits.kind == ir::OpKind::kUpdate)
    return false;
  return node.section->kind == ir::SectionKind::kBackward ||
         node.section->kind == ir::SectionKind::kUpdate;
}

// "%h, f32[8,4] on this rank, is nan at element 17"; empty if it is finite.
std::string DescribeAnomaly(const ir::Graph& graph, const ir::Value& value, const void* data) {
  const TensorType type = graph.LocalType(value);
  const auto found = FirstNonFinite(type.dtype, data, type.shape.num_elements());
  if (!found) return "";
  return fmt::format("%{}, {} on this rank, is {} at element {}", value.name, type.ToString(),
                     ElementText(type.dtype, data, *found), *found);
}

}  // namespace

NodeAnomalies::NodeAnomalies(const ir::Graph& graph, const ir::Node& node,
                             const std::vector<const void*>& inputs)
    : graph_(graph), node_(node), is_checked_(!MayOverflow(graph, node)) {
  if (!is_checked_) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string anomaly = DescribeAnomaly(graph, *node.inputs[i], inputs[i]);
    if (!anomaly.empty()) inputs_ += "; its input " + anomaly;
  }
  if (inputs_.empty()) inputs_ = inputs.empty() ? "; it has no inputs" : "; its inputs were finite";
}

Status NodeAnomalies::CheckOutputs(const std::vector<void*>& outputs, const StepContext& context,
                                   int rank) const {
  if (!is_checked_) return Status::Ok();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string anomaly = DescribeAnomaly(graph_, *node_.outputs[i], outputs[i]);
    if (anomaly.empty()) continue;
    const ir::SectionKind kind = node_.section->kind;
    const bool is_per_micro_batch =
        kind == ir::SectionKind::kForward || kind == ir::SectionKind::kBackward;
    return FailedPrecondition(
        "{} ({}{}, rank {}){}", anomaly, ir::SectionKindName(kind),
        is_per_micro_batch ? fmt::format(", micro-batch {}", context.micro_batch) : "", rank,
        inputs_);
  }
  return Status::Ok();
}

}  // namespace zg
