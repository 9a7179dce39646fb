#include "framework/ir/dot_printer.h"

#include <fmt/format.h>

#include <unordered_map>

#include "framework/ir/memory_category.h"
#include "framework/ir/quote.h"

namespace zg::ir {
namespace {

// A label; Quote's escapes are also those of dot, where `\n` is a line break.
std::string Label(const std::string& text) { return Quote(text); }

std::string_view Color(const Node& node) {
  if (node.outputs.empty()) return "white";
  switch (CategoryOf(*node.outputs[0])) {
    case MemoryCategory::kParameters:
      return "lightblue";
    case MemoryCategory::kGradients:
      return "lightsalmon";
    case MemoryCategory::kOptimizerState:
      return "plum";
    case MemoryCategory::kActivations:
      return "lightgrey";
    case MemoryCategory::kCommunication:
      return "khaki";
    case MemoryCategory::kWorkspace:
      return "white";
  }
  return "white";
}

std::string NodeText(const Node& node) {
  std::string text = node.op->name;
  if (!node.outputs.empty()) text = "%" + node.outputs[0]->name + "\n" + text;
  if (!node.scope.empty()) text += "\n" + node.scope;
  return text;
}

std::string EdgeText(const Value& value) {
  std::string text = value.type.ToString();
  if (!value.sbp.empty()) text += " " + ToString(value.sbp);
  return text;
}

}  // namespace

std::string PrintDot(const Graph& graph) {
  std::string text =
      fmt::format("digraph {} {{\n  node [shape=box, style=filled];\n", Quote(graph.name()));
  std::unordered_map<const Node*, int> ids;
  int num_sections = 0;
  for (const auto& section : graph.sections()) {
    if (section->nodes.empty()) continue;
    std::string title(SectionKindName(section->kind));
    if (section->kind == SectionKind::kEval) title += " " + section->name;
    text += fmt::format("  subgraph cluster{} {{\n    label={};\n", num_sections++, Label(title));
    for (const Node* node : section->nodes) {
      const int id = static_cast<int>(ids.size());
      ids[node] = id;
      text += fmt::format("    n{} [label={}, fillcolor={}];\n", id, Label(NodeText(*node)),
                          Color(*node));
    }
    text += "  }\n";
  }
  for (const Node* node : graph.AllNodes()) {
    for (const Value* input : node->inputs) {
      text += fmt::format("  n{} -> n{} [label={}];\n", ids[input->producer], ids[node],
                          Label(EdgeText(*input)));
    }
  }
  return text + "}\n";
}

}  // namespace zg::ir
