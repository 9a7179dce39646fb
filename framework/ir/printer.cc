#include "framework/ir/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "framework/ir/quote.h"

namespace zg::ir {
namespace {

// Graphs are printed after every pass, so text is built by appending.

void AppendName(const std::string& name, std::string* text) {
  *text += IsPlainName(name) ? name : Quote(name);
}

void AppendValues(const std::vector<Value*>& values, std::string* text) {
  for (size_t i = 0; i < values.size(); ++i) {
    *text += i == 0 ? "%" : ", %";
    if (values[i] == nullptr) {
      *text += "null";
    } else {
      AppendName(values[i]->name, text);
    }
  }
}

void AppendOutputs(const Node& node, std::string* text) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& value = *node.outputs[i];
    *text += i == 0 ? "%" : ", %";
    AppendName(value.name, text);
    *text += ": ";
    *text += value.type.ToString();
    if (!value.sbp.empty()) (*text += ' ') += ToString(value.sbp);
  }
  if (!node.outputs.empty()) *text += " = ";
}

bool IsSame(const Attribute& a, const Attribute& b) {
  if (!(a == b)) return false;
  const auto* const number = std::get_if<double>(&a);
  return number == nullptr || std::signbit(*number) == std::signbit(std::get<double>(b));
}

bool IsDefault(const OpDef& op, const std::string& name, const Attribute& value) {
  return std::any_of(op.attributes.begin(), op.attributes.end(), [&](const AttributeDef& def) {
    return def.name == name && !def.required && IsSame(def.example, value);
  });
}

void AppendAttributes(const Node& node, std::string* text) {
  const char* separator = " (";
  for (const auto& [name, value] : node.attributes.items()) {
    if (IsDefault(*node.op, name, value)) continue;
    *text += separator;
    *text += name;
    *text += '=';
    *text += ToString(value);
    separator = ", ";
  }
  if (separator[0] == ',') *text += ')';
}

// On one line, without spaces around it, as the parser reads it back.
std::string PrintScope(std::string scope) {
  std::replace_if(
      scope.begin(), scope.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  const size_t begin = scope.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return "  // " + scope.substr(begin, scope.find_last_not_of(' ') + 1 - begin);
}

std::string PrintTensor(const StoredTensor& tensor) {
  return fmt::format("tensor {} {}{} at {} init {}{}", Quote(tensor.name), tensor.type.ToString(),
                     tensor.split.empty() ? "" : " " + zg::ToString(tensor.split),
                     tensor.offset_elements, tensor.initializer.ToString(),
                     tensor.copy_of.empty() ? "" : " copy_of " + Quote(tensor.copy_of));
}

std::string PrintMesh(const Mesh& mesh) {
  std::string text = "mesh(";
  for (const MeshAxis& axis : mesh.axes()) {
    if (&axis != &mesh.axes().front()) text += ", ";
    AppendName(axis.name, &text);
    text += fmt::format("={}", axis.size);
    if (axis.has_fixed_parts()) text += fmt::format("/{}", axis.parts);
  }
  return text + ")";
}

std::string SectionHeader(const Section& section) {
  const std::string_view kind = SectionKindName(section.kind);
  if (section.kind != SectionKind::kEval) return std::string(kind);
  return fmt::format("{} {}", kind, Quote(section.name));
}

void AppendNode(const Node& node, std::string* text) {
  AppendOutputs(node, text);
  *text += node.op->name;
  if (!node.inputs.empty()) *text += ' ';
  AppendValues(node.inputs, text);
  AppendAttributes(node, text);
  *text += PrintScope(node.scope);
}

}  // namespace

std::string PrintNode(const Node& node) {
  std::string text;
  AppendNode(node, &text);
  return text;
}

std::string NodeLabel(const Node& node) {
  std::string text = node.section == nullptr ? "?" : SectionHeader(*node.section);
  text += ": " + node.op->name + " ";
  AppendValues(node.outputs.empty() ? node.inputs : node.outputs, &text);
  return text;
}

std::string Print(const Graph& graph) {
  std::unordered_map<const Value*, std::vector<const StoredTensor*>> tensors;
  for (const StoredTensor& tensor : graph.tensors()) tensors[tensor.storage].push_back(&tensor);
  std::string text = fmt::format("graph {} {} micro_batches={}\n", Quote(graph.name()),
                                 PrintMesh(graph.mesh()), graph.micro_batches());
  text.reserve(text.size() + 160 * graph.AllNodes().size());
  for (const auto& section : graph.sections()) {
    if (section->nodes.empty() && section->kind != SectionKind::kEval) continue;
    text += SectionHeader(*section) + ":\n";
    for (const Node* node : section->nodes) {
      text += "  ";
      AppendNode(*node, &text);
      text += '\n';
      for (const Value* output : node->outputs) {
        const auto stored = tensors.find(output);
        if (stored == tensors.end()) continue;
        for (const StoredTensor* tensor : stored->second) {
          text += "    " + PrintTensor(*tensor) + "\n";
        }
      }
    }
  }
  return text;
}

}  // namespace zg::ir
