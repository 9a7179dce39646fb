#include "framework/passes/micro_batch_values.h"

#include <algorithm>

namespace zg {
namespace {

using Values = std::unordered_set<const ir::Value*>;

bool IsMean(const ir::Value* value, const Values& found) {
  return value->type.shape.num_dims() == 0 && found.count(value) != 0;
}

// Whether the node is linear in the inputs for which `is_mean` holds: then terms of them, which are
// partial values, give terms of its output.
template <typename IsMean>
bool IsLinearIn(const ir::Node& node, const IsMean& is_mean) {
  ir::SbpSignature terms = {{}, std::vector<Sbp>(node.outputs.size(), Sbp::P())};
  for (const ir::Value* input : node.inputs) {
    terms.inputs.push_back(is_mean(input) ? Sbp::P() : Sbp::B());
  }
  if (node.op->sbp_signatures == nullptr) return false;
  const std::vector<ir::SbpSignature> legal = node.op->sbp_signatures(node.Call());
  return std::any_of(legal.begin(), legal.end(), [&](const ir::SbpSignature& signature) {
    return signature.inputs == terms.inputs && signature.outputs == terms.outputs;
  });
}

Status CheckMeans(const ir::Node& node, const Values& found) {
  const auto is_mean = [&](const ir::Value* input) { return IsMean(input, found); };
  const auto first = std::find_if(node.inputs.begin(), node.inputs.end(), is_mean);
  if (first == node.inputs.end()) return Status::Ok();
  if (node.op->traits.kind == ir::OpKind::kOutput || IsLinearIn(node, is_mean)) {
    return Status::Ok();
  }
  return InvalidArgument(
      "{}: %{} is a mean over one micro-batch; such means can only be scaled, and added to or "
      "subtracted from each other, else the result would depend on the number of ranks",
      node.op->name, (*first)->name);
}

}  // namespace

StatusOr<Values> MicroBatchValues(const ir::Section& section) {
  Values found;
  for (const ir::Node* node : section.nodes) {
    if (const Status legal = CheckMeans(*node, found); !legal.ok()) {
      return node->scope.empty() ? legal : legal.WithContext(node->scope);
    }
    const bool depends =
        node->op->traits.kind == ir::OpKind::kInput
            ? node->attributes.Sbp("placement") != Sbp::B()
            : std::any_of(node->inputs.begin(), node->inputs.end(),
                          [&](const ir::Value* input) { return found.count(input) != 0; });
    if (depends) found.insert(node->outputs.begin(), node->outputs.end());
  }
  return found;
}

}  // namespace zg
