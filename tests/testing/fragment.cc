#include "tests/testing/fragment.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "framework/ir/op_registry.h"
#include "framework/ir/printer.h"
#include "tests/testing/lines.h"

namespace zg::testing {
namespace {

constexpr std::string_view kDefaultHeader = "graph \"g\" mesh(data=2) micro_batches=2";
constexpr std::string_view kName = "graph \"g\" ";
constexpr std::string_view kSources[] = {"given", "input", "variable"};

// "  %x: f32[8,4] {S(0)} = given (name="x")  // scope"
struct NodeLine {
  std::string_view output;      // "  %x: f32[8,4] {S(0)}"
  std::string_view op;          // empty when there is none
  std::string_view attributes;  // without parentheses
  std::string_view comment;     // "  // scope"
};

// Returns false for a line that is not a node without inputs.
bool ParseSource(std::string_view line, NodeLine* node) {
  if (!StartsWith(Trim(line), "%")) return false;
  const size_t comment = std::min(line.find("  //"), line.size());
  node->comment = line.substr(comment);
  line = line.substr(0, comment);
  const size_t equals = line.find(" = ");
  node->output = line.substr(0, std::min(equals, line.size()));
  node->op = node->attributes = "";
  if (equals == std::string_view::npos) return true;
  const std::string_view rest = line.substr(equals + 3);
  const size_t parenthesis = rest.find(" (");
  node->op = rest.substr(0, std::min(parenthesis, rest.size()));
  if (std::find(std::begin(kSources), std::end(kSources), node->op) == std::end(kSources)) {
    return false;
  }
  if (parenthesis != std::string_view::npos) {
    node->attributes = rest.substr(parenthesis + 2);
    node->attributes.remove_suffix(std::min<size_t>(1, node->attributes.size()));
  }
  return true;
}

// "f32[8,4]" of "%x: f32[8,4] {S(0)}".
std::string_view TypeOf(std::string_view output) {
  const size_t colon = output.find(": ");
  if (colon == std::string_view::npos) return "";
  const std::string_view type = output.substr(colon + 2);
  return type.substr(0, std::min(type.find(' '), type.size()));
}

std::string TypeAttributes(std::string_view type) {
  const size_t bracket = std::min(type.find('['), type.size());
  return fmt::format("dtype=\"{}\", shape={}", type.substr(0, bracket), type.substr(bracket));
}

std::string ExpandLine(std::string_view line) {
  NodeLine node;
  if (!ParseSource(line, &node) || node.attributes.find("dtype=") != std::string_view::npos) {
    return std::string(line);
  }
  return fmt::format("{} = {} ({}{}{}){}", node.output, node.op.empty() ? "given" : node.op,
                     TypeAttributes(TypeOf(node.output)), node.attributes.empty() ? "" : ", ",
                     node.attributes, node.comment);
}

std::string Without(std::string text, const std::string& part) {
  for (const std::string& candidate : {part + ", ", ", " + part, part}) {
    const size_t found = text.find(candidate);
    if (found != std::string::npos) return text.erase(found, candidate.size());
  }
  return text;
}

std::string ShortenLine(std::string_view line) {
  NodeLine node;
  if (!ParseSource(line, &node)) return std::string(line);
  const std::string_view type = TypeOf(node.output);
  const size_t bracket = std::min(type.find('['), type.size());
  std::string attributes(node.attributes);
  attributes = Without(attributes, fmt::format("dtype=\"{}\"", type.substr(0, bracket)));
  attributes = Without(attributes, fmt::format("shape={}", type.substr(bracket)));
  std::string text(node.output);
  if (node.op != "given") text += fmt::format(" = {}", node.op);
  if (!attributes.empty()) text += fmt::format(" ({})", attributes);
  return text.append(node.comment);
}

// One micro-batch per rank, unless the header says otherwise.
std::string ExpandHeader(std::string_view header) {
  std::string text = fmt::format("{}{}", kName, header);
  if (header.find("micro_batches") != std::string_view::npos) return text;
  int64_t num_ranks = 1;
  for (size_t at = header.find('='); at != std::string_view::npos; at = header.find('=', at + 1)) {
    num_ranks *= std::atoll(std::string(header.substr(at + 1)).c_str());
  }
  return fmt::format("{} micro_batches={}", text, num_ranks);
}

std::string ShortenHeader(const ir::Graph& graph, std::string_view header) {
  if (graph.name() != "g") return std::string(header);
  header.remove_prefix(kName.size());
  if (graph.micro_batches() == graph.mesh().num_ranks()) {
    header = header.substr(0, header.find(" micro_batches"));
  }
  return std::string(header);
}

bool IsSectionLine(std::string_view line) {
  return !StartsWith(line, " ") && !line.empty() && line.back() == ':';
}

}  // namespace

void RegisterGiven() {
  if (ir::OpRegistry::Global().Find("given") != nullptr) return;
  ir::OpDef op = *ir::OpRegistry::Global().Find("variable");
  op.name = "given";
  op.attributes = {{"dtype", DType::kF32, true}, {"shape", Shape{}, true}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    return std::vector<TensorType>{
        {call.attributes.DType("dtype"), call.attributes.Shape("shape")}};
  };
  op.doc = "A value of a test that stands for whatever computes it.";
  op.traits.kind = ir::OpKind::kCompute;
  op.traits.has_side_effect = true;  // so that no pass removes it
  ir::OpRegistry::Global().Register(std::move(op));
}

StatusOr<ir::Graph> ParseFragment(std::string_view text, ir::TextSource source) {
  RegisterGiven();
  std::string expanded;
  bool has_header = false;
  bool has_section = false;
  for (std::string_view line : Lines(text)) {
    const std::string_view trimmed = Trim(line);
    if (trimmed.empty() || IsComment(line)) {
      expanded.append(line).append("\n");
      continue;
    }
    if (!has_header) {
      has_header = true;
      if (StartsWith(trimmed, "mesh(")) {
        expanded += ExpandHeader(trimmed) + "\n";
        continue;
      }
      if (!StartsWith(trimmed, "graph")) {
        expanded.append(kDefaultHeader).append("\n");
        --source.first_line;
      }
    }
    if (!has_section && StartsWith(trimmed, "%")) {
      expanded += "forward:\n";
      --source.first_line;
      has_section = true;
    }
    has_section = has_section || IsSectionLine(trimmed);
    expanded += ExpandLine(line) + "\n";
  }
  return ir::Parse(expanded, source);
}

std::string PrintFragment(const ir::Graph& graph) {
  const std::string printed = ir::Print(graph);
  std::string text;
  const std::vector<std::string_view> lines = Lines(printed);
  if (lines[0] != kDefaultHeader) text += ShortenHeader(graph, lines[0]) + "\n";
  for (size_t i = 1; i < lines.size(); ++i) {
    if (i == 1 && lines[i] == "forward:") continue;
    text += ShortenLine(lines[i]) + "\n";
  }
  return text;
}

}  // namespace zg::testing
