#include "tests/passes/mutation_edits.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace zg::testing {

using ir::Graph;
using ir::Node;
using ir::SectionKind;
using ir::Value;

namespace {

// Rebuilds the node with other inputs; the placements and names of the results are kept.
bool Rebuild(Graph& graph, Node* node, const std::vector<Value*>& inputs) {
  const StatusOr<Node*> made = graph.AddNode(
      node->section, {node->op->name, inputs, node->attributes, node->scope, ""}, node);
  if (!made.ok()) return false;
  for (size_t i = 0; i < node->outputs.size() && i < (*made)->outputs.size(); ++i) {
    (*made)->outputs[i]->sbp = node->outputs[i]->sbp;
    graph.ReplaceAllUses(node->outputs[i], (*made)->outputs[i]);
  }
  graph.Erase(node);
  return true;
}

// The nodes after `reader` in its section that `node` needs, in order, with `node` itself; empty if
// it needs the reader.
std::vector<Node*> NeededBehind(const Graph& graph, Node* node, const Node* reader) {
  std::vector<Node*> needed = {node};
  for (size_t i = 0; i < needed.size(); ++i) {
    for (const Value* input : needed[i]->inputs) {
      Node* producer = input->producer;
      if (producer == reader) return {};
      if (producer->section != reader->section) continue;
      if (graph.IndexOf(producer) < graph.IndexOf(reader)) continue;
      if (std::find(needed.begin(), needed.end(), producer) == needed.end()) {
        needed.push_back(producer);
      }
    }
  }
  std::sort(needed.begin(), needed.end(),
            [&](const Node* a, const Node* b) { return graph.IndexOf(a) < graph.IndexOf(b); });
  return needed;
}

bool IsCopy(const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [](const Value* value) {
    return value->name.find(".again") != std::string::npos;
  });
}

// The readers of the value, and the index of the input.
std::vector<std::pair<Node*, int>> PlacesOf(const Value& value) {
  std::vector<std::pair<Node*, int>> places;
  for (Node* reader : std::set<Node*>(value.users.begin(), value.users.end())) {
    for (size_t i = 0; i < reader->inputs.size(); ++i) {
      if (reader->inputs[i] == &value) places.emplace_back(reader, static_cast<int>(i));
    }
  }
  return places;
}

}  // namespace

NodeFilter Op(const std::string& name) {
  return [name](const Node& node) { return node.op->name == name; };
}
NodeFilter In(SectionKind kind, const NodeFilter& filter) {
  return [=](const Node& node) { return node.section->kind == kind && filter(node); };
}
bool IsUpdate(const Node& node) { return node.op->traits.kind == ir::OpKind::kUpdate; }

GraphChange One(const NodeFilter& filter, const NodeChange& change) {
  return [=](Graph& graph, unsigned choice) {
    std::vector<Node*> nodes;
    for (Node* node : graph.AllNodes()) {
      if (filter(*node)) nodes.push_back(node);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (change(graph, nodes[(choice + i) % nodes.size()])) return true;
    }
    return false;
  };
}

bool SameKind(const Value& a, const Value& b) { return a.type == b.type && a.sbp == b.sbp; }

bool Replace(Graph& graph, Node* node, int index, Value* value) {
  if (value == node->inputs[index]) return false;
  graph.ReplaceInput(node, index, value);
  return true;
}

NodeChange ReadAnother(int index, const NodeFilter& producer) {
  return [=](Graph& graph, Node* node) {
    if (index >= static_cast<int>(node->inputs.size())) return false;
    const Value* current = node->inputs[index];
    for (Node* other : graph.AllNodes()) {
      if (other == node) return false;
      if (other->section != node->section && other->section->kind != SectionKind::kVariables) {
        continue;
      }
      if (producer != nullptr && !producer(*other)) continue;
      for (Value* value : other->outputs) {
        if (value != current && SameKind(*value, *current)) {
          return Replace(graph, node, index, value);
        }
      }
    }
    return false;
  };
}

NodeChange SwapInputs(int a, int b) {
  return [=](Graph& graph, Node* node) {
    if (std::max(a, b) >= static_cast<int>(node->inputs.size())) return false;
    Value* first = node->inputs[a];
    Value* second = node->inputs[b];
    if (first == second || !SameKind(*first, *second)) return false;
    graph.ReplaceInput(node, a, second);
    graph.ReplaceInput(node, b, first);
    return true;
  };
}

NodeChange SwapOutputs(int a, int b) {
  return [=](Graph& graph, Node* node) {
    if (std::max(a, b) >= static_cast<int>(node->outputs.size())) return false;
    Value* first = node->outputs[a];
    Value* second = node->outputs[b];
    if (!SameKind(*first, *second)) return false;
    const auto readers_of_first = PlacesOf(*first);
    const auto readers_of_second = PlacesOf(*second);
    for (const auto& [reader, index] : readers_of_first) graph.ReplaceInput(reader, index, second);
    for (const auto& [reader, index] : readers_of_second) graph.ReplaceInput(reader, index, first);
    return true;
  };
}

NodeChange LeaveOut(int index) {
  return [=](Graph& graph, Node* node) {
    if (node->outputs.empty() || index >= static_cast<int>(node->inputs.size())) return false;
    if (node->outputs[0]->type != node->inputs[index]->type) return false;
    graph.ReplaceAllUses(node->outputs[0], node->inputs[index]);
    graph.Erase(node);
    return true;
  };
}

bool Erase(Graph& graph, Node* node) {
  graph.Erase(node);
  return true;
}

NodeChange Multiply(const std::string& attribute, double factor) {
  return [=](Graph&, Node* node) {
    if (!node->attributes.Has(attribute)) return false;
    const double value = node->attributes.Float(attribute);
    node->attributes.Set(attribute, value * factor);
    return value != 0;
  };
}

NodeChange AddTo(const std::string& attribute, int64_t difference) {
  return [=](Graph&, Node* node) {
    if (!node->attributes.Has(attribute)) return false;
    node->attributes.Set(attribute, node->attributes.Int(attribute) + difference);
    return true;
  };
}

NodeChange DropInput(int index) {
  return [=](Graph& graph, Node* node) {
    std::vector<Value*> inputs = node->inputs;
    const int at = index < 0 ? static_cast<int>(inputs.size()) + index : index;
    if (at < 0 || at >= static_cast<int>(inputs.size())) return false;
    inputs.erase(inputs.begin() + at);
    return Rebuild(graph, node, inputs);
  };
}

bool SwapTargets(Graph& graph, Node* node) {
  for (Node* other : graph.NodesOf("assign")) {
    if (other == node || !SameKind(*other->inputs[0], *node->inputs[0]) ||
        !SameKind(*other->inputs[1], *node->inputs[1])) {
      continue;
    }
    Value* target = node->inputs[0];
    graph.ReplaceInput(node, 0, other->inputs[0]);
    graph.ReplaceInput(other, 0, target);
    return true;
  }
  return false;
}

NodeFilter AssignOf(const NodeFilter& producer) {
  return [=](const Node& node) {
    return node.op->name == "assign" && producer(*node.inputs[1]->producer);
  };
}

bool SwapTensors(Graph& graph, Role role) {
  for (ir::StoredTensor& a : graph.tensors()) {
    for (ir::StoredTensor& b : graph.tensors()) {
      if (&a == &b || a.storage != b.storage || ir::RoleOf(*a.storage) != role ||
          a.type != b.type) {
        continue;
      }
      std::swap(a.offset_elements, b.offset_elements);
      return true;
    }
  }
  return false;
}

bool AccumulateInUpdate(Graph& graph, Node* node) {
  ir::Section* update = graph.section(SectionKind::kUpdate);
  Node* assign = nullptr;
  for (Node* user : node->outputs[0]->users) {
    if (user->op->name == "assign") assign = user;
  }
  if (assign == nullptr || update->nodes.empty()) return false;
  graph.MoveBefore(node, update->nodes.front());
  graph.MoveAfter(assign, node);
  return true;
}

bool UpdateTooEarly(Graph& graph, Node* update) {
  Node* assign = nullptr;
  for (Node* user : update->outputs[0]->users) {
    if (user->op->name == "assign" && user->inputs[0] == update->inputs[0]) assign = user;
  }
  if (assign == nullptr) return false;
  for (Node* reader : update->inputs[0]->users) {
    if (reader == update || reader == assign || reader->section != update->section) continue;
    if (graph.IndexOf(reader) >= graph.IndexOf(update)) continue;
    const std::vector<Node*> needed = NeededBehind(graph, update, reader);
    if (needed.empty()) continue;
    for (Node* node : needed) graph.MoveBefore(node, reader);
    graph.MoveAfter(assign, update);
    return true;
  }
  return false;
}

bool SwapStatements(Graph&, Node* node) {
  std::string program = node->attributes.String("program");
  // Replaces the function of the first statement by the second one's, if both take the same number
  // of operands.
  const std::vector<std::pair<std::string, std::string>> swaps = {{"=gelu(", "=relu("},
                                                                  {"=add(", "=multiply("},
                                                                  {"=subtract(", "=add("},
                                                                  {"=multiply(", "=add("},
                                                                  {"=relu(", "=gelu("}};
  for (const auto& [from, to] : swaps) {
    const size_t at = program.find(from);
    if (at == std::string::npos) continue;
    program.replace(at, from.size(), to);
    node->attributes.Set("program", program);
    return true;
  }
  return false;
}

bool ChangeFactor(Graph&, Node* node) {
  std::string program = node->attributes.String("program");
  const size_t at = program.find("factor=");
  if (at == std::string::npos) return false;
  const size_t end = program.find(')', at);
  program.replace(at, end - at, "factor=0.125");
  node->attributes.Set("program", program);
  return true;
}

NodeChange SetSbp(int output, Sbp from, Sbp to) {
  return [=](Graph&, Node* node) {
    if (output >= static_cast<int>(node->outputs.size())) return false;
    NdSbp& sbp = node->outputs[output]->sbp;
    if (sbp.size() != 1 || sbp[0] != from) return false;
    sbp[0] = to;
    return true;
  };
}

NodeFilter Copied(const std::string& op) {
  return [=](const Node& node) { return node.op->name == op && IsCopy(node); };
}

bool AnyNode(const Node& node) { return !node.inputs.empty(); }

}  // namespace zg::testing
