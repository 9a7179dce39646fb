#include "framework/runtime/anomaly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

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

// Whether the node is to fill in an infinite number, such as masked_fill(scores, mask, -INFINITY), or
// does so in a chain of elementwise nodes.
bool IsAskedForInfinity(const ir::Node& node) {
  const auto& items = node.attributes.items();
  return std::any_of(items.begin(), items.end(), [](const auto& item) {
    if (const double* const number = std::get_if<double>(&item.second); number != nullptr) {
      return std::isinf(*number);
    }
    const std::string* const program = std::get_if<std::string>(&item.second);
    return program != nullptr && (program->find("=-inf") != std::string::npos ||
                                  program->find("=inf") != std::string::npos);
  });
}

using FindElement = std::optional<int64_t>(DType dtype, const void* data, int64_t num_elements);

// "%h, f32[8,4] on this rank, is nan at element 17"; empty if `find` finds none.
std::string DescribeAnomaly(const ir::Graph& graph, const ir::Value& value, const void* data,
                            FindElement* find) {
  const TensorType type = graph.LocalType(value);
  const auto found = find(type.dtype, data, type.shape.num_elements());
  if (!found) return "";
  return fmt::format("%{}, {} on this rank, is {} at element {}", value.name, type.ToString(),
                     ElementText(type.dtype, data, *found), *found);
}

}  // namespace

NodeAnomalies::NodeAnomalies(const ir::Graph& graph, const ir::Node& node,
                             const std::vector<const void*>& inputs)
    : graph_(graph),
      node_(node),
      is_checked_(!MayOverflow(graph, node)),
      may_be_infinite_(IsAskedForInfinity(node)) {
  if (!is_checked_) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string anomaly = DescribeAnomaly(graph, *node.inputs[i], inputs[i], FirstNonFinite);
    if (anomaly.empty()) continue;
    inputs_ += "; its input " + anomaly;
    // Data and parameters were asked for nothing.
    const ir::OpTraits& producer = node.inputs[i]->producer->op->traits;
    may_be_infinite_ = may_be_infinite_ || (node.section->kind != ir::SectionKind::kUpdate &&
                                            producer.kind != ir::OpKind::kInput &&
                                            producer.kind != ir::OpKind::kVariable);
  }
  if (inputs_.empty()) inputs_ = inputs.empty() ? "; it has no inputs" : "; its inputs were finite";
}

Status NodeAnomalies::CheckOutputs(const std::vector<void*>& outputs, const StepContext& context,
                                   int rank) const {
  if (!is_checked_) return Status::Ok();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string anomaly = DescribeAnomaly(graph_, *node_.outputs[i], outputs[i],
                                                may_be_infinite_ ? FirstNan : FirstNonFinite);
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
