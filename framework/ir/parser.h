// Reads the text form of a graph (printer.h): Print(Parse(text)) == text for every text that Print
// made. Spaces, blank lines and lines that begin with `//` are ignored; a comment at the end of a
// node's line is its scope.
//
// Nodes are made by Graph::AddNode, which checks ops, numbers of inputs, attributes and declared
// types. Verify (verifier.h) checks the rules of a whole graph: placements, overlapping tensors,
// the order between sections. Any text gives a graph or an error.
#pragma once

#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg::ir {

// The source of the text: errors begin with `name:line:column: `.
struct TextSource {
  std::string_view name = "graph";
  int first_line = 1;
};

StatusOr<Graph> Parse(std::string_view text, TextSource source = {});

}  // namespace zg::ir
