#include "zero/clip_gradients.h"

#include <algorithm>

#include "framework/base/exact_sum.h"
#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "framework/passes/result_names.h"
#include "framework/passes/scale_loss.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

bool HasControl(const ir::Node& update) {
  return update.inputs.size() == update.outputs.size() + 2;
}

bool IsPartial(const ir::Value& value) {
  return std::any_of(value.sbp.begin(), value.sbp.end(), [](Sbp sbp) { return sbp.is_partial(); });
}

// Takes square sums in front of `first`, the first update node.
class NormBuilder {
 public:
  NormBuilder(ir::Graph* graph, ir::Node* first)
      : graph_(*graph), first_(first), builder_(graph, first->section) {
    builder_.InsertBefore(first);
  }

  // The square sum of the gradient that `update` reads.
  StatusOr<ir::Value*> SquareSumOf(ir::Node* update) {
    if (IsPartial(*update->inputs[1])) {
      ZG_RETURN_IF_ERROR(PlaceWhole(update, 1, WholeSbp(graph_, *update), builder_));
    }
    ir::Value* gradient = update->inputs[1];
    ir::Node* producer = gradient->producer;
    // A `place` may be between updates, but its input comes from backward.
    if (producer->section == first_->section && graph_.IndexOf(producer) > graph_.IndexOf(first_)) {
      graph_.MoveBefore(producer, first_);
    }
    const bool is_split = graph_.LocalType(*gradient).shape != gradient->type.shape;
    if (is_split &&
        graph_.LocalType(*gradient).shape.num_elements() % kSquareSumTermElements != 0) {
      return InvalidArgument(
          "clip-gradients: a rank's part of %{} is {}, expected a multiple of {} elements; make "
          "buckets with the pass bucketing",
          gradient->name, graph_.LocalType(*gradient).ToString(), kSquareSumTermElements);
    }
    ir::Value* sum = builder_.Op("square_sum", {gradient}, {}, gradient->name + ".square_sum");
    ZG_RETURN_IF_ERROR(builder_.status());
    return sum;
  }

  // Sums that are pending along the same axes become one, so that one collective is enough.
  StatusOr<std::vector<ir::Value*>> Combine(const std::vector<ir::Value*>& sums) {
    std::vector<ir::Value*> combined;
    std::vector<std::vector<ir::Value*>> partial;
    for (ir::Value* sum : sums) {
      if (!IsPartial(*sum)) {
        combined.push_back(sum);
        continue;
      }
      const auto alike = std::find_if(partial.begin(), partial.end(),
                                      [&](const auto& group) { return group[0]->sbp == sum->sbp; });
      if (alike == partial.end()) {
        partial.push_back({sum});
      } else {
        alike->push_back(sum);
      }
    }
    for (const std::vector<ir::Value*>& group : partial) {
      combined.push_back(
          group.size() == 1 ? group[0] : builder_.Op("add_square_sums", group, {}, "square_sum"));
      ZG_RETURN_IF_ERROR(builder_.status());
    }
    return combined;
  }

  // `all_sums` is empty if no norm is requested; `weight` may be null.
  StatusOr<ir::Value*> Control(const std::vector<ir::Value*>& all_sums, ir::Value* weight,
                               double max_norm, bool skip_non_finite) {
    ZG_ASSIGN_OR_RETURN(std::vector<ir::Value*> inputs, Combine(all_sums));
    if (weight != nullptr) inputs.push_back(weight);
    const ir::StoredTensor* scaler = graph_.FindTensor(kLossScaler);
    std::string op = op_names::kUpdateControl;
    ir::Value* state = nullptr;
    if (scaler != nullptr) {
      op = op_names::kScaledUpdateControl;
      state = scaler->storage;
    } else if (skip_non_finite) {
      op = op_names::kGuardedUpdateControl;
      ZG_RETURN_IF_ERROR(AddLoss(&inputs));
      state = builder_.Variable(kUpdateCounter, {DType::kF32, Shape{2}}, Initializer::Zeros(),
                                Role::kControl);
    }
    if (state != nullptr) inputs.push_back(state);
    ir::Attributes attributes = {{"max_norm", max_norm}};
    if (weight != nullptr) attributes.Set("weighted", true);
    const std::vector<ir::Value*> outputs = builder_.Ops(op, inputs, attributes, "control");
    if (state != nullptr) builder_.Ops("assign", {state, outputs[2]});
    ZG_RETURN_IF_ERROR(builder_.status());
    if (all_sums.empty()) return outputs[0];
    graph_.Rename(outputs[1], "grad_norm");
    builder_.Ops("output", {outputs[1]}, {{"name", std::string("grad_norm")}});
    ZG_RETURN_IF_ERROR(builder_.status());
    return outputs[0];
  }

  // The step's result with this name before the updates, whole on every rank; null: there is none.
  StatusOr<ir::Value*> StepResult(const char* name) {
    for (ir::Node* node : graph_.NodesOf(ir::OpKind::kOutput)) {
      if (node->section != first_->section || node->attributes.String("name") != name ||
          graph_.IndexOf(node) > graph_.IndexOf(first_)) {
        continue;
      }
      if (IsPartial(*node->inputs[0])) {
        ir::Builder builder(&graph_, node->section);
        builder.InsertBefore(node);
        ZG_RETURN_IF_ERROR(PlaceWhole(node, 0, AllBroadcast(graph_.mesh()), builder));
      }
      return node->inputs[0];
    }
    return nullptr;
  }

 private:
  // Otherwise insert-collectives would sum it for each of its readers. `builder` inserts before
  // `reader`.
  Status PlaceWhole(ir::Node* reader, int index, const NdSbp& sbp, ir::Builder& builder) {
    ir::Value* partial = reader->inputs[index];
    ir::Value* whole = builder.Place(partial, sbp, partial->name + ".whole");
    ZG_RETURN_IF_ERROR(builder.status());
    graph_.ReplaceInput(reader, index, whole);
    return Status::Ok();
  }

  Status AddLoss(std::vector<ir::Value*>* inputs) {
    ZG_ASSIGN_OR_RETURN(ir::Value * loss, StepResult(kLossResult));
    if (loss != nullptr) inputs->push_back(loss);
    return Status::Ok();
  }

  ir::Graph& graph_;
  ir::Node* first_;
  ir::Builder builder_;
};

}  // namespace

StatusOr<bool> ClipGradients::Run(ir::Graph& graph) const {
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  if (updates.empty() || HasControl(*updates[0])) return false;
  NormBuilder norm(&graph, updates[0]);
  const bool needs_norm =
      max_norm_ > 0 || skip_non_finite_ || graph.FindTensor(kLossScaler) != nullptr;
  ZG_ASSIGN_OR_RETURN(ir::Value * weight, norm.StepResult(kLossWeightResult));
  if (!needs_norm && weight == nullptr) return false;
  std::vector<ir::Value*> sums;
  for (ir::Node* update : updates) {
    if (!needs_norm) break;
    ZG_ASSIGN_OR_RETURN(ir::Value * sum, norm.SquareSumOf(update));
    sums.push_back(sum);
  }
  ZG_ASSIGN_OR_RETURN(ir::Value * control, norm.Control(sums, weight, max_norm_, skip_non_finite_));
  for (ir::Node* update : updates) {
    std::vector<ir::Value*> inputs = update->inputs;
    inputs.push_back(control);
    ZG_RETURN_IF_ERROR(ReplaceUpdate(graph, update, inputs));
  }
  return true;
}

}  // namespace zg::zero
