#include "framework/passes/fuse_additions.h"

#include <unordered_map>
#include <utility>

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "framework/ops/summed_parts.h"

namespace zg {
namespace {

bool IsPlain(const ir::Node& node, const char* attribute) {
  return !node.attributes.Bool(attribute);
}

class Fusion {
 public:
  explicit Fusion(ir::Graph* graph) : graph_(*graph) {
    for (const auto& section : graph_.sections()) {
      int position = 0;
      for (const ir::Node* node : section->nodes) position_[node] = position++;
    }
  }

  StatusOr<bool> FuseAddition(ir::Node* add) {
    ir::Value* const sum = add->outputs[0];
    if (add->inputs[0] == add->inputs[1]) return false;
    for (const ir::Value* input : add->inputs) {
      if (input->type != sum->type || input->sbp != sum->sbp) return false;
    }
    const int last = IsBefore(*add->inputs[0], *add->inputs[1], *add->section) ? 1 : 0;
    ir::Value* const operand = add->inputs[last];
    ir::Node* const producer = operand->producer;
    const bool fuses = producer->op->traits.takes_addend && operand == producer->outputs[0] &&
                       operand->users.size() == 1 && producer->section == add->section &&
                       add->inputs[1 - last]->producer != producer && IsPlain(*producer, "adds");
    if (!fuses) return false;
    std::vector<ir::Value*> inputs = producer->inputs;
    inputs.push_back(add->inputs[1 - last]);
    ZG_ASSIGN_OR_RETURN(const Outputs fused, Again(producer, "adds", std::move(inputs)));
    TakeName(fused[0], sum, add);
    return true;
  }

  StatusOr<bool> FuseRowSum(ir::Node* row_sum) {
    const ir::Value* const operand = row_sum->inputs[0];
    ir::Node* const producer = operand->producer;
    const bool fuses = producer->op->traits.sums_rows && operand == producer->outputs[0] &&
                       producer->section == row_sum->section && IsPlain(*producer, "sums") &&
                       SummedParts::Of(producer->Call()) == SummedParts::Of(row_sum->Call());
    if (!fuses) return false;
    ZG_ASSIGN_OR_RETURN(const Outputs fused, Again(producer, "sums", producer->inputs));
    TakeName(fused.back(), row_sum->outputs[0], row_sum);
    return true;
  }

 private:
  using Outputs = std::vector<ir::Value*>;

  // Whether `a` is available when `b`'s node runs; both are operands of a node of `section`.
  bool IsBefore(const ir::Value& a, const ir::Value& b, const ir::Section& section) const {
    if (a.producer->section != &section) return true;
    if (b.producer->section != &section) return false;
    return position_.at(a.producer) < position_.at(b.producer);
  }

  // The node with `inputs` and the attribute, in its place and with its results' names.
  StatusOr<Outputs> Again(ir::Node* node, const char* attribute, std::vector<ir::Value*> inputs) {
    ir::Builder builder(&graph_, node->section);
    builder.InsertBefore(node);
    builder.set_scope(node->scope);
    ir::Attributes attributes = node->attributes;
    attributes.Set(attribute, true);
    Outputs fused = builder.Ops(node->op->name, std::move(inputs), std::move(attributes));
    ZG_RETURN_IF_ERROR(builder.status());
    position_[fused[0]->producer] = position_.at(node);
    std::vector<std::string> names;
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      names.push_back(node->outputs[i]->name);
      graph_.ReplaceAllUses(node->outputs[i], fused[i]);
    }
    graph_.Erase(node);
    for (size_t i = 0; i < names.size(); ++i) graph_.Rename(fused[i], names[i]);
    return fused;
  }

  // `value` replaces the only result of `node`.
  void TakeName(ir::Value* value, ir::Value* result, ir::Node* node) {
    const std::string name = result->name;
    graph_.ReplaceAllUses(result, value);
    graph_.Erase(node);
    graph_.Rename(value, name);
  }

  ir::Graph& graph_;
  std::unordered_map<const ir::Node*, int> position_;  // in their sections
};

}  // namespace

StatusOr<bool> FuseAdditions::Run(ir::Graph& graph) const {
  Fusion fusion(&graph);
  bool changed = false;
  for (ir::Node* add : graph.NodesOf(op_names::kAdd)) {
    ZG_ASSIGN_OR_RETURN(const bool fused, fusion.FuseAddition(add));
    changed = changed || fused;
  }
  for (ir::Node* row_sum : graph.NodesOf(op_names::kLinearGradBias)) {
    ZG_ASSIGN_OR_RETURN(const bool fused, fusion.FuseRowSum(row_sum));
    changed = changed || fused;
  }
  return changed;
}

}  // namespace zg
