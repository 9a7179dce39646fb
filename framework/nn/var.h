// Var: a value of the model while a graph is traced, which is while the function given to
// Graph::train or Graph::eval runs. A light handle: copy it freely, but not out of that function.
// Functions of Vars (functions.h) and the operators below append one node to the graph each.
//
// Nothing throws. The graph keeps the first error, with the path of the module that made it; from
// then on every function returns an empty Var and does nothing. Outside that function there is no
// graph to keep an error: there a function of Vars ends the process with one.
#pragma once

#include <cstdint>

#include "framework/ir/graph.h"

namespace zg {

namespace nn {
class Trace;
}

class Var {
 public:
  Var() = default;  // empty

  bool empty() const { return value_ == nullptr; }
  Shape shape() const;       // of one micro-batch; [] for an empty Var
  DType dtype() const;       // f32 for an empty Var
  int64_t dim(int i) const;  // negative i counts from the end; no such dim: an error, and 1
  ir::Value* value() const { return value_; }  // null for an empty Var

 private:
  friend class nn::Trace;
  Var(ir::Value* value, int64_t trace_id) : value_(value), trace_id_(trace_id) {}

  ir::Value* value_ = nullptr;
  int64_t trace_id_ = 0;
};

// Element by element, on equal shapes.
Var operator+(Var a, Var b);
Var operator-(Var a, Var b);
Var operator*(Var a, Var b);
Var operator*(Var x, double factor);
Var operator*(double factor, Var x);

}  // namespace zg
