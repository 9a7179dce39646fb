// The text form of a graph: deterministic, complete (equal text means equal graphs), and read back
// by Parse (parser.h). One node per line, in sections:
//
//   graph "mlp" mesh(data=2) micro_batches=4
//   variables:
//     %w: f32[3,4] {B} = variable (dtype="f32", shape=[3,4])  // hidden
//       tensor "hidden.weight" f32[3,4] at 0 init normal(0.02)
//   forward:
//     %x: f32[16,4] {S(0)} = input (dtype="f32", name="x", shape=[16,4])
//     %y: f32[16,3] {S(0)} = linear %x, %w  // hidden
//     %n: f32[16,3] {S(0)}, %n.1: f32[16] {S(0)}, %n.2: f32[16] {S(0)} = layer_norm %y, %g, %b
//   eval "predict":
//
// An output shows its logical type, and its placement once it has one. Attributes are in name
// order, without those that have their default. The comment is the node's scope. A tensor that
// holds another one, rounded to its own dtype, ends with `copy_of "hidden.weight"`. Empty sections
// are left out, except eval sections.
#pragma once

#include <string>

#include "framework/ir/graph.h"

namespace zg::ir {

std::string Print(const Graph& graph);

// The node's line, without indentation and without the end of line.
std::string PrintNode(const Node& node);

// `forward: linear %y`, `update: assign %w, %next`: the name of a node in messages.
std::string NodeLabel(const Node& node);

}  // namespace zg::ir
