#include "zero/eval_weights.h"

#include <map>
#include <set>

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// Empty for updates that have none.
std::string EvalProgramOf(const ir::Node& update) {
  constexpr char kName[] = "eval_program";
  return update.attributes.Has(kName) ? update.attributes.String(kName) : std::string();
}

// One section, whose views of buckets are of the weights that it reads otherwise, except those in
// `others`.
class SectionReads {
 public:
  SectionReads(ir::Graph* graph, ir::Section* section) : graph_(*graph), section_(section) {}

  // Replaces each `other_weights` by a view of its own.
  Status SeparateOthers() {
    for (ir::Node* node : graph_.NodesOf(op_names::kOtherWeights)) {
      if (node->section != section_) continue;
      ir::Builder builder(&graph_, section_);
      builder.InsertBefore(node);
      builder.set_scope(node->scope);
      ZG_ASSIGN_OR_RETURN(ir::Value* const read, SeparateFrom(node->inputs[0], &builder));
      graph_.ReplaceAllUses(node->outputs[0], read);
      graph_.Erase(node);
    }
    return Status::Ok();
  }

  // Lets views read the weights for evaluation; whether there are any.
  StatusOr<bool> Compute(const ir::Node& update) {
    ir::Value* const bucket = ParameterAssign(update)->inputs[0];  // possibly a 16-bit copy
    std::vector<ir::Node*> views;
    for (ir::Node* user : UsersIn(graph_, *section_, *bucket)) {
      const bool is_other = others_.count(user) != 0;
      const bool is_view = user->op->traits.kind == ir::OpKind::kView;
      if (is_view && is_other != IsEval()) views.push_back(user);
    }
    if (views.empty()) return false;
    const std::string program = EvalProgramOf(update);
    if (program.empty() && IsEval()) return false;
    if (program.empty()) {
      return InvalidArgument(
          "training reads the average of '{}', and its optimizer keeps none; train it by a rule that "
          "does, such as with_ema(rule_of(AdamW{{lr}}), decay)",
          ViewedTensor(*views.front()));
    }
    ir::Builder builder(&graph_, section_);
    builder.InsertBefore(views.front());
    std::vector<ir::Value*> inputs = {update.inputs[0]};
    inputs.insert(inputs.end(), update.inputs.begin() + 2, update.inputs.end());
    ir::Value* weights = builder.Op("fused_elementwise", inputs, {{"program", program}},
                                    update.inputs[0]->name + ".eval");
    if (bucket->type.dtype != weights->type.dtype) {
      weights =
          builder.Op("cast", {weights}, {{"dtype", bucket->type.dtype}}, bucket->name + ".eval");
    }
    ZG_RETURN_IF_ERROR(builder.status());
    for (ir::Node* view : views) graph_.ReplaceInput(view, 0, weights);
    return true;
  }

 private:
  // The name of the tensor that a view shows.
  std::string ViewedTensor(const ir::Node& view) const {
    for (const ir::StoredTensor& tensor : graph_.tensors()) {
      const bool is_viewed = tensor.storage == view.inputs[0] &&
                             tensor.offset_elements == view.attributes.Int("offset");
      if (is_viewed) return tensor.copy_of.empty() ? tensor.name : tensor.copy_of;
    }
    return view.outputs[0]->name;
  }

  bool IsEval() const { return section_->kind == ir::SectionKind::kEval; }

  // The value, made from a view of its own; a parameter that is not trained is read as it is.
  StatusOr<ir::Value*> SeparateFrom(ir::Value* value, ir::Builder* builder) {
    const ir::Node& producer = *value->producer;
    if (ir::IsVariable(*value)) return value;
    ir::Value* input = producer.inputs[0];
    if (producer.op->traits.kind == ir::OpKind::kCast) {
      ZG_ASSIGN_OR_RETURN(input, SeparateFrom(input, builder));
    }
    ir::Value* const copy =
        builder->Op(producer.op->name, {input}, producer.attributes, value->name);
    ZG_RETURN_IF_ERROR(builder->status());
    if (copy->producer->op->traits.kind == ir::OpKind::kView) others_.insert(copy->producer);
    return copy;
  }

  ir::Graph& graph_;
  ir::Section* section_;
  std::set<const ir::Node*> others_;
};

}  // namespace

StatusOr<bool> EvalWeights::Run(ir::Graph& graph) const {
  bool changed = !graph.NodesOf(op_names::kOtherWeights).empty();
  const std::vector<ir::Node*> updates = UpdateNodes(graph);
  for (const auto& section : graph.sections()) {
    if (section->kind == ir::SectionKind::kVariables) continue;
    if (section->kind == ir::SectionKind::kUpdate) continue;
    SectionReads reads(&graph, section.get());
    ZG_RETURN_IF_ERROR(reads.SeparateOthers());
    for (const ir::Node* update : updates) {
      ZG_ASSIGN_OR_RETURN(const bool reads_any, reads.Compute(*update));
      changed = changed || reads_any;
    }
  }
  return changed;
}

}  // namespace zg::zero
