#include "framework/nn/micro_batch_values.h"

#include <algorithm>

namespace zg::nn {
namespace {

using Values = std::unordered_set<const ir::Value*>;

bool IsMean(const ir::Value* value, const Values& found) {
  return value->type.shape.num_dims() == 0 && found.count(value) != 0;
}

Status CheckMeans(const ir::Node& node, const Values& found) {
  const auto is_mean = [&](const ir::Value* input) { return IsMean(input, found); };
  const auto first = std::find_if(node.inputs.begin(), node.inputs.end(), is_mean);
  if (first == node.inputs.end()) return Status::Ok();
  const std::string& op = node.op->name;
  const auto num_means = std::count_if(node.inputs.begin(), node.inputs.end(), is_mean);
  if (op == "scale" || op == "output") return Status::Ok();
  if ((op == "add" || op == "subtract") && num_means == 2) return Status::Ok();
  if (op == "multiply" && num_means == 1) return Status::Ok();
  return InvalidArgument(
      "{}: %{} is a mean over one micro-batch; such means can only be scaled, and added to or "
      "subtracted from each other, else the result would depend on the number of ranks",
      op, (*first)->name);
}

}  // namespace

StatusOr<Values> MicroBatchValues(const ir::Section& section) {
  Values found;
  for (const ir::Node* node : section.nodes) {
    if (const Status legal = CheckMeans(*node, found); !legal.ok()) {
      return node->scope.empty() ? legal : legal.WithContext(node->scope);
    }
    const bool depends =
        node->op->name == "input"
            ? node->attributes.String("placement") != "B"
            : std::any_of(node->inputs.begin(), node->inputs.end(),
                          [&](const ir::Value* input) { return found.count(input) != 0; });
    if (depends) found.insert(node->outputs.begin(), node->outputs.end());
  }
  return found;
}

}  // namespace zg::nn
