#include "framework/ir/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "framework/ir/quote.h"

namespace zg::ir {
namespace {

std::string PlainOrQuoted(const std::string& name) {
  return IsPlainName(name) ? name : Quote(name);
}

std::string ValueName(const Value* value) {
  return value == nullptr ? "%null" : "%" + PlainOrQuoted(value->name);
}

std::string PrintOutput(const Value& value) {
  std::string text = fmt::format("{}: {}", ValueName(&value), value.type.ToString());
  if (!value.sbp.empty()) text += " " + ToString(value.sbp);
  return text;
}

bool IsDefault(const OpDef& op, const std::string& name, const Attribute& value) {
  return std::any_of(op.attributes.begin(), op.attributes.end(), [&](const AttributeDef& def) {
    // As text, which tells 0.0 from -0.0.
    return def.name == name && !def.required && ToString(def.example) == ToString(value);
  });
}

std::string PrintAttributes(const Node& node) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : node.attributes.items()) {
    if (!IsDefault(*node.op, name, value)) {
      parts.push_back(fmt::format("{}={}", name, ToString(value)));
    }
  }
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", "));
}

// On one line, without spaces around it: as the parser reads it back.
std::string PrintScope(std::string scope) {
  std::replace_if(
      scope.begin(), scope.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  const size_t begin = scope.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return "  // " + scope.substr(begin, scope.find_last_not_of(' ') + 1 - begin);
}

std::string PrintInputs(const Node& node) {
  std::vector<std::string> inputs;
  for (const Value* input : node.inputs) inputs.push_back(ValueName(input));
  return fmt::format("{}", fmt::join(inputs, ", "));
}

std::string PrintTensor(const StoredTensor& tensor) {
  return fmt::format("tensor {} {} at {} init {}{}", Quote(tensor.name), tensor.type.ToString(),
                     tensor.offset_elements, tensor.initializer.ToString(),
                     tensor.copy_of.empty() ? "" : " copy_of " + Quote(tensor.copy_of));
}

std::string PrintMesh(const Mesh& mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh.axes()) {
    axes.push_back(fmt::format("{}={}", PlainOrQuoted(axis.name), axis.size));
  }
  return fmt::format("mesh({})", fmt::join(axes, ", "));
}

std::string SectionHeader(const Section& section) {
  const std::string_view kind = SectionKindName(section.kind);
  if (section.kind != SectionKind::kEval) return std::string(kind);
  return fmt::format("{} {}", kind, Quote(section.name));
}

}  // namespace

std::string PrintNode(const Node& node) {
  std::vector<std::string> outputs;
  for (const Value* output : node.outputs) outputs.push_back(PrintOutput(*output));
  std::string text = fmt::format("{}", fmt::join(outputs, ", "));
  if (!text.empty()) text += " = ";
  text += node.op->name;
  if (!node.inputs.empty()) text += " " + PrintInputs(node);
  return text + PrintAttributes(node) + PrintScope(node.scope);
}

std::string NodeLabel(const Node& node) {
  std::vector<std::string> values;
  for (const Value* value : node.outputs.empty() ? node.inputs : node.outputs) {
    values.push_back(ValueName(value));
  }
  return fmt::format("{}: {} {}", node.section == nullptr ? "?" : SectionHeader(*node.section),
                     node.op->name, fmt::join(values, ", "));
}

std::string Print(const Graph& graph) {
  std::unordered_map<const Value*, std::vector<const StoredTensor*>> tensors;
  for (const StoredTensor& tensor : graph.tensors()) tensors[tensor.storage].push_back(&tensor);
  std::string text = fmt::format("graph {} {} micro_batches={}\n", Quote(graph.name()),
                                 PrintMesh(graph.mesh()), graph.micro_batches());
  for (const auto& section : graph.sections()) {
    if (section->nodes.empty() && section->kind != SectionKind::kEval) continue;
    text += SectionHeader(*section) + ":\n";
    for (const Node* node : section->nodes) {
      text += "  " + PrintNode(*node) + "\n";
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
