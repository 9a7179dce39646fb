// The output of wrong passes: changes to the graph that a pass produced, by name. Each is one
// mistake that a programmer could make (a collective left out, an operand swapped, a wrong offset).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/ir/graph.h"

namespace zg::testing {

struct Mutation {
  std::string pass;
  std::string name;
  // Changes the graph at one of several places, selected by the number; false if there is none.
  std::function<bool(ir::Graph& graph, unsigned choice)> apply;
  // Not empty: no program can observe the change, because...
  std::string equivalent = {};
};

std::vector<Mutation> AllMutations();

// Those of passes on results, on evals and on what programs leave to later ones, among them.
std::vector<Mutation> MutationsOfResults();

}  // namespace zg::testing
