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

#include <functional>
#include <string>
#include <utility>

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
  // checkpoints hold it like any other. Like the two functions below it holds for graphs that use the
  // parameter from then on; it is an error of compiling a graph that has used it before.
  void freeze() {
    if (is_trainable_) Changed("was frozen; freeze it before, or call Graph::freeze");
    is_trainable_ = false;
  }

  // Replaces the initializer that it was constructed with.
  void set_initializer(const Initializer& initializer) {
    if (!(initializer == initializer_)) Changed("got another initializer; set it before");
    initializer_ = initializer;
  }

  // Functions that read the parameter get function(p) instead, of the same shape, where p is its own
  // value, which training changes and files hold (torch.nn.utils.parametrize):
  //   scale.reads_as([](Var p) { return softplus(p); });           // positive
  //   weight.reads_as([](Var p) {                                   // of 8 bits, as if that were smooth
  //     return p + stop_gradient(clamp(round(p * 64.0), -128, 127) / 64.0 - p);
  //   });
  // Called once in each train and eval function that reads the parameter. A second call replaces the
  // first. weight_norm and spectral_norm (nn/weight_norm.h) use it.
  void reads_as(std::function<Var(Var)> function) {
    Changed("got a function to be read as; set it before");
    reads_as_ = std::move(function);
  }
};

}  // namespace nn

}  // namespace zg
