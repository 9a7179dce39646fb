// Parameter: a named tensor of a module that training changes.
//
// As in PyTorch, a parameter that no function of a graph uses is not an error. It is not part of
// that graph: it takes no memory, is not trained and is not in checkpoints.
//
//   struct Bias : zg::nn::Module {
//     zg::nn::Parameter value{this, "value", {256}, zg::Initializer::Zeros()};
//     zg::Var forward(zg::Var x) { return zg::add(x, value); }
//   };
#pragma once

#include <string>

#include "framework/nn/variable.h"

namespace zg {

struct NamedParameter {
  std::string name;  // its path
  Shape shape;
};

namespace nn {

class Parameter : public Variable {
 public:
  Parameter(const Module* module, const std::string& name, Shape shape, Initializer initializer)
      : Variable(module, name, std::move(shape), initializer, Role::kParameter) {}

  // Excludes the parameter from training: no gradient, no optimizer state. Files of weights and
  // checkpoints hold it like any other. Must be called before its first use in a graph.
  void freeze() { is_trainable_ = false; }

  // Replaces the initializer that it was constructed with. Must also be called before its first
  // use.
  void set_initializer(const Initializer& initializer) { initializer_ = initializer; }
};

}  // namespace nn

}  // namespace zg
