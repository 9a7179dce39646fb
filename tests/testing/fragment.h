// Fragments: graphs of tests in a short form, which leaves out everything irrelevant.
//
//   %x: f32[12,4] {S(0)}
//   %w: f32[3,4] {B}
//   %y: f32[12,3] {S(0)} = linear %x, %w
//
// - A value without a node is given: the code that runs the graph chooses its contents. It is
//   made by the op `given`, which exists only in tests and which no pass removes, copies or moves.
// - `variable`, `input` and given values need not repeat their type as attributes.
// - The header may be missing; that is mesh(data=2). `mesh(data=3) micro_batches=6` is one, too;
//   the default is one micro-batch per rank.
// - Nodes before the first section are in forward.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/ir/parser.h"

namespace zg::testing {

// Makes `given` known to the registry of ops.
void RegisterGiven();

// Parses a graph in the short form, or in the usual one.
StatusOr<ir::Graph> ParseFragment(std::string_view text, ir::TextSource source = {});

// The graph as short as possible. PrintFragment(ParseFragment(t)) has the lines of t, without
// comments.
std::string PrintFragment(const ir::Graph& graph);

}  // namespace zg::testing
