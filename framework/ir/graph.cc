#include "framework/ir/graph.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"

namespace zg::ir {
namespace {

template <typename T>
void RemoveOne(std::vector<T>* items, const T& item) {
  const auto found = std::find(items->begin(), items->end(), item);
  ZG_CHECK(found != items->end(), "graph links are inconsistent");
  items->erase(found);
}

// Most nodes that are erased one by one were appended last.
void RemoveLast(std::vector<Node*>* nodes, Node* node) {
  const auto found = std::find(nodes->rbegin(), nodes->rend(), node);
  ZG_CHECK(found != nodes->rend(), "graph links are inconsistent");
  nodes->erase(std::next(found).base());
}

}  // namespace

std::string_view SectionKindName(SectionKind kind) {
  constexpr std::string_view kNames[] = {"variables", "forward", "backward", "update", "eval"};
  return kNames[static_cast<int>(kind)];
}

OpCall Node::Call() const {
  OpCall call{op, {}, attributes};
  for (const Value* input : inputs) call.inputs.push_back(input->type);
  return call;
}

std::vector<int> BoxingAxes(const Node& node) {
  if (!node.attributes.Has("axes") || node.attributes.Ints("axes").empty()) {
    return {static_cast<int>(node.attributes.Int("axis"))};
  }
  const std::vector<int64_t>& axes = node.attributes.Ints("axes");
  return std::vector<int>(axes.begin(), axes.end());
}

bool IsVariable(const Value& value) { return value.producer->op->traits.kind == OpKind::kVariable; }

Role RoleOf(const Value& variable) {
  ZG_CHECK(IsVariable(variable), "%{} is no variable", variable.name);
  return variable.producer->attributes.Role("role");
}

bool HasRole(const Value& value, Role role) { return IsVariable(value) && RoleOf(value) == role; }

bool IsTrainableParameter(const Value& value) {
  return HasRole(value, Role::kParameter) && value.producer->attributes.Bool("trainable");
}

bool HoldsGradient(const Value& value) {
  const Node& node = *value.producer;
  switch (node.op->traits.kind) {
    case OpKind::kVariable:
      return RoleOf(value) == Role::kGradient;
    case OpKind::kPack:
      return true;
    case OpKind::kAccumulate:
    case OpKind::kBoxing:
    case OpKind::kCast:
    case OpKind::kPlace:
    case OpKind::kView:
    case OpKind::kWait:
      return HoldsGradient(*node.inputs[0]);
    default:
      return false;
  }
}

bool IsInFlight(const Value& value) {
  const Node& node = *value.producer;
  return node.op->traits.kind == OpKind::kPack && node.attributes.Bool("in_flight");
}

bool MovesData(const Node& node) { return node.op->sent_bytes != nullptr; }

bool IsStart(const Node& node) {
  return node.op->traits.kind == OpKind::kBoxing && node.attributes.Bool("start");
}

std::vector<Node*> StartsOf(const Node& wait) {
  const Value& awaited = *wait.inputs[0];
  std::vector<Node*> starts;
  const auto add = [&](Node* node) {
    if (IsStart(*node)) starts.push_back(node);
  };
  add(awaited.producer);
  for (const Node* user : awaited.users) {
    const bool assigns_it = user->op->traits.kind == OpKind::kAssign && user->inputs[0] == &awaited;
    if (assigns_it) add(user->inputs[1]->producer);
  }
  return starts;
}

OpCall Node::LocalCall(const Mesh& mesh) const {
  OpCall call{op, {}, attributes};
  for (const Value* input : inputs) {
    call.inputs.push_back({input->type.dtype, LocalShape(input->type.shape, input->sbp, mesh)});
  }
  if (op->localize != nullptr) op->localize(Call(), &call);
  return call;
}

Graph::Graph(std::string name, Mesh mesh, int64_t micro_batches)
    : name_(std::move(name)), mesh_(std::move(mesh)), micro_batches_(micro_batches) {
  for (SectionKind kind : {SectionKind::kVariables, SectionKind::kForward, SectionKind::kBackward,
                           SectionKind::kUpdate}) {
    sections_.push_back(std::make_unique<Section>(Section{kind, "", {}}));
  }
}

Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph Graph::Clone() const {
  Graph clone(name_, mesh_, micro_batches_);
  std::unordered_map<const Value*, Value*> value_of;
  std::unordered_map<const Node*, Node*> node_of;
  for (const auto& value : values_) {
    clone.values_.push_back(std::make_unique<Value>(*value));
    value_of[value.get()] = clone.values_.back().get();
  }
  for (const auto& node : nodes_) {
    clone.nodes_.push_back(std::make_unique<Node>(*node));
    Node* const copy = clone.nodes_.back().get();
    node_of[node.get()] = copy;
    for (Value*& input : copy->inputs) input = value_of.at(input);
    for (Value*& output : copy->outputs) output = value_of.at(output);
  }
  for (const auto& value : clone.values_) {
    value->producer = node_of.at(value->producer);
    for (Node*& user : value->users) user = node_of.at(user);
  }
  clone.sections_.clear();
  for (const auto& section : sections_) {
    clone.sections_.push_back(std::make_unique<Section>(Section{section->kind, section->name, {}}));
    Section* const copy = clone.sections_.back().get();
    for (const Node* node : section->nodes) {
      copy->nodes.push_back(node_of.at(node));
      copy->nodes.back()->section = copy;
    }
  }
  for (const auto& [name, value] : values_by_name_)
    clone.values_by_name_[name] = value_of.at(value);
  clone.name_counts_ = name_counts_;
  clone.tensors_ = tensors_;
  for (StoredTensor& tensor : clone.tensors_) tensor.storage = value_of.at(tensor.storage);
  return clone;
}

Section* Graph::section(SectionKind kind) const {
  ZG_CHECK(kind != SectionKind::kEval, "eval sections are found by name");
  return sections_[static_cast<int>(kind)].get();
}

Section* Graph::AddEvalSection(std::string name, const Section* before) {
  const auto place = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const auto& section) { return section.get() == before; });
  const auto added = sections_.insert(
      place, std::make_unique<Section>(Section{SectionKind::kEval, std::move(name), {}}));
  return added->get();
}

StatusOr<Node*> Graph::AddNode(Section* section, NodeSpec spec, Node* before) {
  const OpDef* op = OpRegistry::Global().Find(spec.op);
  if (op == nullptr) return InvalidArgument("unknown op '{}'", spec.op);
  const int num_inputs = static_cast<int>(spec.inputs.size());
  if (num_inputs < op->min_inputs || (op->max_inputs >= 0 && num_inputs > op->max_inputs)) {
    return InvalidArgument("{}: got {} inputs, expected {}{}", op->name, num_inputs, op->min_inputs,
                           op->max_inputs == op->min_inputs ? ""
                           : op->max_inputs < 0             ? " or more"
                                                : fmt::format(" to {}", op->max_inputs));
  }
  ZG_RETURN_IF_ERROR(CompleteAttributes(op->attributes, &spec.attributes).WithContext(op->name));
  auto node = std::make_unique<Node>();
  node->op = op;
  node->inputs = std::move(spec.inputs);
  node->attributes = std::move(spec.attributes);
  node->scope = std::move(spec.scope);
  node->section = section;
  ZG_ASSIGN_OR_RETURN(std::vector<TensorType> types, op->infer_shape(node->Call()));
  const int num_outputs = static_cast<int>(types.size());
  ZG_CHECK(num_outputs == op->num_outputs || op->num_outputs < 0, "{}: shape rule gave {} outputs",
           op->name, num_outputs);
  for (const TensorType& type : types) {
    if (type.shape.IsValid()) continue;
    return InvalidArgument("{}: got output type {}, expected dims >= 0 with at most 2^56 elements",
                           op->name, type.ToString());
  }
  for (Value* input : node->inputs) input->users.push_back(node.get());
  const std::string hint = spec.name.empty() ? op->name : spec.name;
  for (int i = 0; i < num_outputs; ++i) {
    auto value = std::make_unique<Value>();
    value->name = UniqueName(i == 0 ? hint : fmt::format("{}.{}", hint, i));
    value->type = types[i];
    value->producer = node.get();
    value->output_index = i;
    values_by_name_[value->name] = value.get();
    node->outputs.push_back(value.get());
    value->owner_index = values_.size();
    values_.push_back(std::move(value));
  }
  auto position = section->nodes.end();
  if (before != nullptr) {
    ZG_CHECK(before->section == section, "the position is in another section");
    position = std::find(section->nodes.begin(), section->nodes.end(), before);
  }
  section->nodes.insert(position, node.get());
  node->owner_index = nodes_.size();
  nodes_.push_back(std::move(node));
  return nodes_.back().get();
}

void Graph::ReplaceInput(Node* node, int index, Value* value) {
  RemoveOne(&node->inputs[index]->users, node);
  node->inputs[index] = value;
  value->users.push_back(node);
}

void Graph::DropInputs(Node* node) {
  for (Value* input : node->inputs) RemoveOne(&input->users, node);
  node->inputs.clear();
}

void Graph::ReplaceAllUses(Value* from, Value* to) {
  const std::vector<Node*> users = from->users;
  for (Node* user : users) {
    for (size_t i = 0; i < user->inputs.size(); ++i) {
      if (user->inputs[i] == from) ReplaceInput(user, static_cast<int>(i), to);
    }
  }
}

bool Graph::is_placed() const {
  for (const auto& section : sections_) {
    for (const Node* node : section->nodes) {
      if (!node->outputs.empty()) return !node->outputs[0]->sbp.empty();
    }
  }
  return false;
}

void Graph::Erase(Node* node) {
  for (Value* output : node->outputs) {
    ZG_CHECK(output->users.empty(), "%{} is erased but still used", output->name);
    values_by_name_.erase(output->name);
  }
  for (Value* input : node->inputs) RemoveOne(&input->users, node);
  RemoveLast(&node->section->nodes, node);
  // Moves the last element into the gap, because the graph of a large model has many elements.
  const auto erase_owned = [](auto* owners, size_t index) {
    std::swap((*owners)[index], owners->back());
    (*owners)[index]->owner_index = index;
    owners->pop_back();
  };
  for (const Value* output : node->outputs) erase_owned(&values_, output->owner_index);
  erase_owned(&nodes_, node->owner_index);
}

void Graph::MoveBefore(Node* node, Node* before) {
  ZG_CHECK(before != nullptr && node != before, "a node moves before another node");
  RemoveOne(&node->section->nodes, node);
  node->section = before->section;
  std::vector<Node*>& nodes = before->section->nodes;
  nodes.insert(std::find(nodes.begin(), nodes.end(), before), node);
}

void Graph::MoveAfter(Node* node, Node* after) {
  ZG_CHECK(node != after, "a node moves after another node");
  RemoveOne(&node->section->nodes, node);
  node->section = after->section;
  std::vector<Node*>& nodes = after->section->nodes;
  nodes.insert(std::find(nodes.begin(), nodes.end(), after) + 1, node);
}

Node* Graph::NextOf(const Node* node) const {
  const size_t next = IndexOf(node) + 1;
  return next < node->section->nodes.size() ? node->section->nodes[next] : nullptr;
}

void Graph::Rename(Value* value, std::string name) {
  values_by_name_.erase(value->name);
  value->name = UniqueName(name);
  values_by_name_[value->name] = value;
}

int Graph::IndexOf(const Node* node) const {
  const std::vector<Node*>& nodes = node->section->nodes;
  return static_cast<int>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
}

Value* Graph::FindValue(std::string_view name) const {
  const auto found = values_by_name_.find(std::string(name));
  return found == values_by_name_.end() ? nullptr : found->second;
}

std::vector<Node*> Graph::AllNodes() const {
  std::vector<Node*> all;
  for (const auto& section : sections_)
    all.insert(all.end(), section->nodes.begin(), section->nodes.end());
  return all;
}

std::vector<Node*> Graph::NodesOf(std::string_view op) const {
  std::vector<Node*> found;
  for (Node* node : AllNodes()) {
    if (node->op->name == op) found.push_back(node);
  }
  return found;
}

std::vector<Node*> Graph::NodesOf(OpKind kind) const {
  std::vector<Node*> found;
  for (Node* node : AllNodes()) {
    if (node->op->traits.kind == kind) found.push_back(node);
  }
  return found;
}

StoredTensor* Graph::FindTensor(std::string_view name) {
  return const_cast<StoredTensor*>(std::as_const(*this).FindTensor(name));
}

const StoredTensor* Graph::FindTensor(std::string_view name) const {
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

TensorType Graph::LocalType(const Value& value) const {
  return {value.type.dtype, LocalShape(value.type.shape, value.sbp, mesh_)};
}

std::string Graph::UniqueName(const std::string& hint) {
  std::string name = hint;
  while (values_by_name_.count(name) != 0) name = fmt::format("{}_{}", hint, ++name_counts_[hint]);
  return name;
}

}  // namespace zg::ir
