// What a wrong pass would make: changes of the graph that a pass gave, by name. Each is one mistake
// that somebody could write (a collective left out, an operand swapped, a wrong offset).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/ir/graph.h"

namespace zg::testing {

struct Mutation {
  std::string pass;
  std::string name;
  // Changes the graph at one place of several, chosen by the number; false when there is none.
  std::function<bool(ir::Graph& graph, unsigned choice)> apply;
  // Not empty: nothing that a program computes can tell, because...
  std::string equivalent = {};
};

std::vector<Mutation> AllMutations();

}  // namespace zg::testing
