// Parameter: a named tensor of a module that training changes. It becomes a variable of the graph
// being traced at its first use there; a graph's train and eval functions share it.
//
//   struct Bias : zg::nn::Module {
//     zg::nn::Parameter value{this, "value", {256}, zg::Initializer::Zeros()};
//     zg::Var forward(zg::Var x) { return zg::add_broadcast(x, value); }
//   };
#pragma once

#include <string>

#include "framework/nn/var.h"

namespace zg::nn {

class Module;

class Parameter {
 public:
  // f32; its path is that of `module`, ".", and `name`.
  Parameter(const Module* module, const std::string& name, Shape shape, Initializer initializer);
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  operator Var() const;  // NOLINT: implicit, so that functions of Vars take parameters

  const std::string& path() const { return path_; }  // "blocks.3.attention.qkv.weight"
  const std::string& module_path() const { return module_path_; }
  const Shape& shape() const { return shape_; }
  const Initializer& initializer() const { return initializer_; }
  int64_t id() const { return id_; }  // unique in the process
  Status Check() const;               // of the path's characters and the shape

 private:
  std::string module_path_;
  std::string path_;
  Shape shape_;
  Initializer initializer_;
  int64_t id_;
};

}  // namespace zg::nn
