#include "framework/passes/fuse_elementwise.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "framework/base/check.h"
#include "framework/ir/builder.h"
#include "framework/ops/elementwise_program.h"

namespace zg {
namespace {

bool CanFuse(const ir::Node& node) {
  if (!node.op->traits.is_elementwise) return false;
  for (const ir::Value* input : node.inputs) {
    if (input->type != node.outputs[0]->type) return false;  // the operand is broadcast
  }
  const std::vector<Sbp>& sbp = node.outputs[0]->sbp;
  return std::none_of(sbp.begin(), sbp.end(), [](Sbp one) { return one.is_partial(); });
}

// Whether `input` is computed by a node that can run inside its only user `node`.
bool FusesInto(const ir::Value& input, const ir::Node& node) {
  return CanFuse(*input.producer) && input.users.size() == 1 &&
         input.producer->section == node.section && input.type == node.outputs[0]->type &&
         input.sbp == node.outputs[0]->sbp;
}

// The program of one chain, written from its last node.
class Chain {
 public:
  explicit Chain(ir::Node* last) { Visit(last); }

  const std::vector<ir::Node*>& nodes() const { return nodes_; }  // in execution order
  const std::vector<ir::Value*>& inputs() const { return inputs_; }
  const ElementwiseProgram& program() const { return program_; }

 private:
  // Returns the operand for the node's result.
  ElementwiseOperand Visit(ir::Node* node) {
    ElementwiseStatement statement;
    statement.op = FindElementwiseRow(node->op->name);
    ZG_CHECK(statement.op != nullptr, "{} is no row of elementwise.inc", node->op->name);
    for (ir::Value* input : node->inputs) {
      statement.operands.push_back(FusesInto(*input, *node) ? Visit(input->producer)
                                                            : InputOperand(input));
    }
    if (!statement.op->attribute.empty()) {
      statement.attribute = node->attributes.Float(statement.op->attribute);
    }
    nodes_.push_back(node);
    program_.push_back(std::move(statement));
    return {false, static_cast<int>(program_.size()) - 1};
  }

  ElementwiseOperand InputOperand(ir::Value* value) {
    const auto found = std::find(inputs_.begin(), inputs_.end(), value);
    const int index = static_cast<int>(found - inputs_.begin());
    if (found == inputs_.end()) inputs_.push_back(value);
    return {true, index};
  }

  std::vector<ir::Node*> nodes_;
  std::vector<ir::Value*> inputs_;
  ElementwiseProgram program_;
};

Status Replace(ir::Graph& graph, const Chain& chain) {
  ir::Node* last = chain.nodes().back();
  ir::Builder builder(&graph, last->section);
  builder.InsertBefore(last);
  builder.set_scope(last->scope);
  ir::Value* fused = builder.Op("fused_elementwise", chain.inputs(),
                                {{"program", ToString(chain.program())}}, last->outputs[0]->name);
  ZG_RETURN_IF_ERROR(builder.status());
  graph.ReplaceAllUses(last->outputs[0], fused);
  for (auto node = chain.nodes().rbegin(); node != chain.nodes().rend(); ++node) graph.Erase(*node);
  return Status::Ok();
}

}  // namespace

StatusOr<bool> FuseElementwise::Run(ir::Graph& graph) const {
  std::vector<ir::Node*> nodes = graph.AllNodes();
  std::unordered_set<const ir::Node*> fused;
  bool changed = false;
  // From the end, so that a chain is found at its last node.
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (fused.count(*node) != 0 || !CanFuse(**node)) continue;
    const Chain chain(*node);
    if (chain.nodes().size() < 2) continue;
    fused.insert(chain.nodes().begin(), chain.nodes().end());
    ZG_RETURN_IF_ERROR(Replace(graph, chain));
    changed = true;
  }
  return changed;
}

}  // namespace zg
