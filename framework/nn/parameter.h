// Parameter: a named tensor of a module that training changes. It belongs to its model from its
// construction on (Module::named_parameters), and becomes a variable of a graph when a function of
// the graph first uses it; the graph's train and eval functions share it.
//
// A parameter that no function of a graph uses is no error, as in PyTorch. It is not in that graph:
// it takes no memory, is not trained and is not in checkpoints.
//
//   struct Bias : zg::nn::Module {
//     zg::nn::Parameter value{this, "value", {256}, zg::Initializer::Zeros()};
//     zg::Var forward(zg::Var x) { return zg::add_broadcast(x, value); }
//   };
#pragma once

#include <memory>
#include <string>

#include "framework/nn/parameter_tree.h"
#include "framework/nn/var.h"

namespace zg {

struct NamedParameter {
  std::string name;  // its path
  Shape shape;
};

namespace nn {

class Module;

class Parameter {
 public:
  // f32; its path is that of `module`, ".", and `name`. Without a module it belongs to no model.
  Parameter(const Module* module, const std::string& name, Shape shape, Initializer initializer);
  ~Parameter();
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  // Training leaves it as it is: no gradient, no optimizer state. Files of weights and checkpoints
  // hold it like any other. Before its first use in a graph.
  void freeze() { is_trainable_ = false; }

  operator Var() const;  // NOLINT: implicit, so that functions of Vars take parameters

  const std::string& path() const { return path_; }  // "blocks.3.attention.qkv.weight"
  const std::string& module_path() const { return module_path_; }
  const Shape& shape() const { return shape_; }
  const Initializer& initializer() const { return initializer_; }
  bool is_trainable() const { return is_trainable_; }
  int64_t id() const { return id_; }  // unique in the process

  // Errors: characters of the path, the shape, another parameter of the model with the same path.
  Status Check() const;

 private:
  std::shared_ptr<ParameterTree> tree_;  // null without a module
  std::string module_path_;
  std::string path_;
  Shape shape_;
  Initializer initializer_;
  bool is_trainable_ = true;
  int64_t id_;
};

}  // namespace nn

}  // namespace zg
