// What a function of Vars gives, for tests of its type and its errors.
#pragma once

#include <functional>
#include <string>

#include "framework/nn/nn.h"

namespace zg {

// The type of the function's result for x f32[2,3,4], or the error.
inline std::string Of(const std::function<Var(Var)>& function) {
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return function(in.f32("x", {2, 3, 4})); });
  if (!graph.status().ok()) return graph.status().message();
  return graph.result_type("run", "result")->ToString();
}

inline std::string Error(const std::string& text) { return "graph g, eval 'run': " + text; }

}  // namespace zg
