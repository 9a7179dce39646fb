// Builder: appends nodes to one section of a graph. nn modules, gradient rules, optimizers and
// passes write nodes through it. The first error is kept, with the module path, and every later
// call returns null, so callers check status() once, at the end. In a graph that has placements,
// new values get theirs as infer-sbp would choose them (placement.h).
#pragma once

#include <string>
#include <vector>

#include "framework/ir/graph.h"

namespace zg::ir {

class Builder {
 public:
  Builder(Graph* graph, Section* section) : graph_(graph), section_(section) {}

  // New nodes go before `node` (in its section) from now on; null: to the end of the current
  // section.
  void InsertBefore(Node* node);

  Value* Op(const std::string& op, std::vector<Value*> inputs, Attributes attributes = {},
            std::string name = "");
  // Like Op, for ops with several outputs.
  std::vector<Value*> Ops(const std::string& op, std::vector<Value*> inputs,
                          Attributes attributes = {}, std::string name = "");

  // Returns the value in another placement.
  Value* Place(Value* value, const NdSbp& sbp, std::string name);

  // A `variable` node of the variables section that holds exactly one named tensor.
  Value* Variable(const std::string& name, const TensorType& type, Initializer initializer,
                  Role role, bool trainable = true);
  // A `variable` node without a tensor, or whose tensors have yet to be moved there. ZeRO shards it
  // at stages up to `stage`; 3: at all of them.
  Value* Storage(const std::string& name, const TensorType& type, Role role, int64_t stage = 3);

  void set_scope(std::string scope) { scope_ = std::move(scope); }
  const std::string& scope() const { return scope_; }
  void Fail(const Status& status);  // keeps the first error, with the scope as context
  const Status& status() const { return status_; }
  Graph& graph() { return *graph_; }
  Section* section() { return section_; }

 private:
  // Returns null after an error, which is kept.
  Node* Add(Section* section, Graph::NodeSpec spec, Node* before);

  Graph* graph_;
  Section* section_;
  Node* before_ = nullptr;
  std::string scope_;
  Status status_;
};

// The view of a gradient rule: the node, the gradients of its outputs, and the slots for the
// gradients of its inputs.
class GradientContext {
 public:
  GradientContext(const Node& node, Builder* builder, std::vector<Value*> output_gradients,
                  std::vector<bool> needed)
      : node_(node),
        builder_(builder),
        output_gradients_(std::move(output_gradients)),
        needed_(std::move(needed)),
        input_gradients_(node.inputs.size(), nullptr) {}

  const Node& node() const { return node_; }
  Builder& builder() { return *builder_; }
  Value* input(int i) const { return node_.inputs[i]; }
  Value* output(int i) const { return node_.outputs[i]; }
  int num_inputs() const { return static_cast<int>(needed_.size()); }
  Value* output_gradient(int i = 0) const {
    return output_gradients_[i];
  }                                               // null: the output is not used by the loss
  bool needs(int i) const { return needed_[i]; }  // whether the gradient of input i is needed
  void set_input_gradient(int i, Value* gradient) { input_gradients_[i] = gradient; }
  const std::vector<Value*>& input_gradients() const { return input_gradients_; }

  // For a rule that does not handle the last input.
  GradientContext WithoutLastInput() const {
    GradientContext rest = *this;
    rest.needed_.pop_back();
    rest.input_gradients_.pop_back();
    return rest;
  }

 private:
  const Node& node_;
  Builder* builder_;
  std::vector<Value*> output_gradients_;
  std::vector<bool> needed_;
  std::vector<Value*> input_gradients_;
};

}  // namespace zg::ir
