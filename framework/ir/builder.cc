#include "framework/ir/builder.h"

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"
#include "framework/ir/placement.h"

namespace zg::ir {

void Builder::InsertBefore(Node* node) {
  before_ = node;
  if (node != nullptr) section_ = node->section;
}

Value* Builder::Op(const std::string& op, std::vector<Value*> inputs, Attributes attributes,
                   std::string name) {
  const std::vector<Value*> outputs =
      Ops(op, std::move(inputs), std::move(attributes), std::move(name));
  return outputs.empty() ? nullptr : outputs[0];
}

std::vector<Value*> Builder::Ops(const std::string& op, std::vector<Value*> inputs,
                                 Attributes attributes, std::string name) {
  const OpDef* def = OpRegistry::Global().Find(op);
  const bool is_known = def != nullptr && def->num_outputs >= 0;
  const std::vector<Value*> none(is_known ? def->num_outputs : 1, nullptr);
  if (!status_.ok()) return none;
  for (const Value* input : inputs)
    ZG_CHECK(input != nullptr, "{}: a null input without an earlier error", op);
  const Node* node = Add(
      section_, {op, std::move(inputs), std::move(attributes), scope_, std::move(name)}, before_);
  return node == nullptr ? none : node->outputs;
}

Value* Builder::Place(Value* value, const NdSbp& sbp, std::string name) {
  return Op("place", {value}, {{"sbp", sbp}}, std::move(name));
}

Value* Builder::Variable(const std::string& name, const TensorType& type, Initializer initializer,
                         Role role, bool trainable) {
  if (!status_.ok()) return nullptr;
  if (graph_->FindTensor(name) != nullptr) {
    Fail(InvalidArgument(
        "two variables are named '{}'; give one of the modules another name, and members of modules "
        "their parent: {{this, \"name\", ...}}",
        name));
    return nullptr;
  }
  Value* value = Storage(name, type, role);
  if (value == nullptr) return nullptr;
  value->producer->attributes.Set("trainable", trainable);
  graph_->tensors().push_back({name, type, initializer, value, 0});
  return value;
}

Value* Builder::Storage(const std::string& name, const TensorType& type, Role role, int64_t stage) {
  if (!status_.ok()) return nullptr;
  const Node* node =
      Add(graph_->section(SectionKind::kVariables),
          {"variable",
           {},
           {{"dtype", type.dtype}, {"stage", stage}, {"role", role}, {"shape", type.shape}},
           scope_,
           name},
          nullptr);
  return node == nullptr ? nullptr : node->outputs[0];
}

Node* Builder::Add(Section* section, Graph::NodeSpec spec, Node* before) {
  const bool is_placed = graph_->is_placed();
  StatusOr<Node*> node = graph_->AddNode(section, std::move(spec), before);
  if (!node.ok()) {
    Fail(node.status());
    return nullptr;
  }
  if (is_placed) PlaceOutputs(*node, graph_->mesh());
  return *node;
}

void Builder::Fail(const Status& status) {
  if (status_.ok()) status_ = scope_.empty() ? status : status.WithContext(scope_);
}

}  // namespace zg::ir
