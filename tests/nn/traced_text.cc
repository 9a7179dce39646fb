#include "tests/nn/traced_text.h"

#include <sstream>

#include "framework/ir/printer.h"

namespace zg::nn {

std::string SectionText(const Graph& graph, const std::string& header) {
  std::istringstream lines(ir::Print(graph.ir()));
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != ' ') {
      inside = line == header + ":";
    } else if (inside) {
      text += line.substr(2) + "\n";
    }
  }
  return text;
}

std::string TracedText(const std::function<Outputs(Inputs&)>& build) {
  Graph graph("test");
  graph.eval("run", build);
  if (!graph.status().ok()) return graph.status().message();
  return SectionText(graph, "eval \"run\"");
}

}  // namespace zg::nn
