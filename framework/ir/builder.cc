#include "framework/ir/builder.h"

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"

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
  const std::vector<Value*> none(def == nullptr ? 1 : def->num_outputs, nullptr);
  if (!status_.ok()) return none;
  for (const Value* input : inputs)
    ZG_CHECK(input != nullptr, "{}: a null input without an earlier error", op);
  StatusOr<Node*> node = graph_->AddNode(
      section_, {op, std::move(inputs), std::move(attributes), scope_, std::move(name)}, before_);
  if (!node.ok()) {
    Fail(node.status());
    return none;
  }
  return (*node)->outputs;
}

Value* Builder::Variable(const std::string& name, const TensorType& type, Initializer initializer,
                         MemoryCategory category) {
  if (!status_.ok()) return nullptr;
  if (graph_->FindTensor(name) != nullptr) {
    Fail(InvalidArgument("two variables are named '{}'; give one of the modules another name",
                         name));
    return nullptr;
  }
  StatusOr<Node*> node = graph_->AddNode(
      graph_->section(SectionKind::kVariables),
      {"variable", {}, {{"dtype", type.dtype}, {"shape", type.shape}}, scope_, name});
  if (!node.ok()) {
    Fail(node.status());
    return nullptr;
  }
  Value* value = (*node)->outputs[0];
  value->category = category;
  graph_->tensors().push_back({name, type, initializer, value, 0});
  return value;
}

void Builder::Fail(const Status& status) {
  if (status_.ok()) status_ = scope_.empty() ? status : status.WithContext(scope_);
}

}  // namespace zg::ir
