#include "framework/passes/fuse_gelu.h"

#include <algorithm>

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "framework/ops/summed_parts.h"

namespace zg {
namespace {

// Whether `user` applies `op` to the product in its own section, type and placement; `input` is the
// one of its inputs that must be the product.
bool Follows(const ir::Node& user, std::string_view op, size_t input, const ir::Value& product) {
  return user.op->name == op && user.inputs[input] == &product &&
         user.section == product.producer->section && user.outputs[0]->type == product.type &&
         user.outputs[0]->sbp == product.sbp;
}

bool IsPartial(const ir::Value& value) {
  return std::any_of(value.sbp.begin(), value.sbp.end(), [](Sbp one) { return one.is_partial(); });
}

bool SumsInParts(const ir::Node& node) { return SummedParts::Of(node.Call()).count > 1; }

// Makes the fused nodes, in the modules of their products and with the values' former names.
class Fusion {
 public:
  explicit Fusion(ir::Graph* graph) : graph_(*graph) {}

  StatusOr<bool> FuseLinear(ir::Node* linear) {
    if (linear->attributes.Bool("adds") || SumsInParts(*linear)) return false;
    ir::Value* const h = linear->outputs[0];
    std::vector<ir::Node*> gelus;
    bool is_copy = false;
    for (ir::Node* user : h->users) {
      if (Follows(*user, op_names::kGelu, 0, *h)) gelus.push_back(user);
      is_copy = is_copy || Follows(*user, op_names::kGeluGrad, 1, *h);
    }
    if (IsPartial(*h) || (gelus.empty() && !is_copy)) return false;
    // Several gelus of one value are the same; the first in the section gives the name.
    std::sort(gelus.begin(), gelus.end(), [&](const ir::Node* a, const ir::Node* b) {
      return graph_.IndexOf(a) < graph_.IndexOf(b);
    });
    ZG_ASSIGN_OR_RETURN(const Outputs fused,
                        Add(op_names::kLinearGelu, linear->inputs, *linear, linear));
    const std::string h_name = h->name;
    const std::string y_name = gelus.empty() ? h_name + ".gelu" : gelus[0]->outputs[0]->name;
    for (ir::Node* gelu : gelus) Replace(gelu, fused[0]);
    Replace(linear, fused[1]);
    graph_.Rename(fused[0], y_name);
    graph_.Rename(fused[1], h_name);
    return true;
  }

  StatusOr<bool> FuseGradient(ir::Node* linear_grad) {
    if (linear_grad->attributes.Bool("adds") || SumsInParts(*linear_grad)) return false;
    ir::Value* const dy = linear_grad->outputs[0];
    if (IsPartial(*dy) || dy->users.size() != 1) return false;
    ir::Node* const gelu_grad = dy->users[0];
    if (!Follows(*gelu_grad, op_names::kGeluGrad, 0, *dy)) return false;
    const ir::Value& h = *gelu_grad->inputs[1];
    if (h.type != dy->type || h.sbp != dy->sbp) return false;  // gelu_grad broadcasts it
    std::vector<ir::Value*> inputs = linear_grad->inputs;
    inputs.push_back(gelu_grad->inputs[1]);
    // Its h may be computed between the two.
    ZG_ASSIGN_OR_RETURN(const Outputs fused, Add(op_names::kLinearGradInputGelu, std::move(inputs),
                                                 *linear_grad, gelu_grad));
    const std::string name = gelu_grad->outputs[0]->name;
    Replace(gelu_grad, fused[0]);
    graph_.Erase(linear_grad);
    graph_.Rename(fused[0], name);
    return true;
  }

 private:
  using Outputs = std::vector<ir::Value*>;

  // A node of the module of `product`, before `place`.
  StatusOr<Outputs> Add(const std::string& op, std::vector<ir::Value*> inputs,
                        const ir::Node& product, ir::Node* place) {
    ir::Builder builder(&graph_, place->section);
    builder.InsertBefore(place);
    builder.set_scope(product.scope);
    Outputs outputs = builder.Ops(op, std::move(inputs));
    ZG_RETURN_IF_ERROR(builder.status());
    return outputs;
  }

  void Replace(ir::Node* node, ir::Value* value) {
    graph_.ReplaceAllUses(node->outputs[0], value);
    graph_.Erase(node);
  }

  ir::Graph& graph_;
};

}  // namespace

StatusOr<bool> FuseGelu::Run(ir::Graph& graph) const {
  Fusion fusion(&graph);
  bool changed = false;
  for (ir::Node* linear : graph.NodesOf(op_names::kLinear)) {
    ZG_ASSIGN_OR_RETURN(const bool fused, fusion.FuseLinear(linear));
    changed = changed || fused;
  }
  for (ir::Node* linear_grad : graph.NodesOf(op_names::kLinearGradInput)) {
    ZG_ASSIGN_OR_RETURN(const bool fused, fusion.FuseGradient(linear_grad));
    changed = changed || fused;
  }
  return changed;
}

}  // namespace zg
