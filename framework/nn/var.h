// Var: a value of the model while a graph is traced, which is while the function given to
// Graph::train or Graph::eval runs. A light handle: copy it freely, but not out of that function.
// Functions of Vars (functions.h) and the operators below each append one node to the graph.
//
// While an Eager exists (framework/eager), functions run at once instead, and a Var has a value.
//
// Nothing throws. The graph keeps the first error, with the path of the module that made it; from
// then on every function returns an empty Var and does nothing. Outside that function there is no
// graph to keep an error: there a function of Vars ends the process with one.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/ir/graph.h"

namespace zg {

namespace nn {
class Trace;
}

class Var {
 public:
  Var() = default;  // empty

  bool empty() const { return value_ == nullptr; }
  Shape shape() const;       // shape of one micro-batch; [] for an empty Var
  DType dtype() const;       // f32 for an empty Var
  int64_t dim(int i) const;  // negative i counts from the end; an unknown dim is an error, and
                             // gives 1
  ir::Value* value() const { return value_; }  // null for an empty Var
  // Keeps the value of a Var that was computed eagerly alive; null while a graph is traced.
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  friend class nn::Trace;
  Var(ir::Value* value, int64_t trace_id, std::shared_ptr<const void> owner)
      : value_(value), trace_id_(trace_id), owner_(std::move(owner)) {}

  ir::Value* value_ = nullptr;
  int64_t trace_id_ = 0;
  std::shared_ptr<const void> owner_;
};

// Elementwise; shapes are broadcast as in NumPy: they are aligned at their last dims, and a dim
// that is missing or of size 1 is repeated.
Var operator+(Var a, Var b);
Var operator-(Var a, Var b);
Var operator*(Var a, Var b);
Var operator/(Var a, Var b);
Var operator+(Var x, double offset);
Var operator+(double offset, Var x);
Var operator-(Var x, double offset);
Var operator-(double minuend, Var x);
Var operator*(Var x, double factor);
Var operator*(double factor, Var x);
Var operator/(Var x, double divisor);
Var operator/(double dividend, Var x);
Var operator-(Var x);
inline Var& operator+=(Var& a, Var b) { return a = a + b; }
inline Var& operator-=(Var& a, Var b) { return a = a - b; }
inline Var& operator*=(Var& a, Var b) { return a = a * b; }
inline Var& operator/=(Var& a, Var b) { return a = a / b; }
inline Var& operator+=(Var& x, double offset) { return x = x + offset; }
inline Var& operator-=(Var& x, double offset) { return x = x - offset; }
inline Var& operator*=(Var& x, double factor) { return x = x * factor; }
inline Var& operator/=(Var& x, double divisor) { return x = x / divisor; }

namespace nn {  // where operands that are parameters or buffers make the compiler look for them
using zg::operator+;
using zg::operator-;
using zg::operator*;
using zg::operator/;
}  // namespace nn

}  // namespace zg
