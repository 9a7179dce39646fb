// Variable: a tensor that a module stores under a name: a Parameter, which training changes by its
// gradient, or a Buffer, which a training function updates by a formula of its own. It belongs to
// its model from its construction on, and becomes a variable of a graph when a function of the
// graph first uses it; the graph's train and eval functions share it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/ir/initializer.h"
#include "framework/ir/role.h"
#include "framework/nn/model_tree.h"
#include "framework/nn/var.h"

namespace zg::nn {

class Module;

// What was changed of a variable after a graph had read it, which that graph does not see: "'w' was
// frozen". Empty: nothing.
using LateChange = std::string;

class Variable {
 public:
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  operator Var() const;  // NOLINT: implicit, so that functions of Vars take it

  const std::string& path() const { return path_; }  // "blocks.3.attention.qkv.weight"
  const std::string& module_path() const { return module_path_; }
  const Shape& shape() const { return shape_; }
  const Initializer& initializer() const { return initializer_; }
  Role role() const { return role_; }  // kParameter or kBuffer
  bool is_trainable() const { return is_trainable_; }
  int64_t id() const { return id_; }  // unique in the process

  // Errors: invalid characters in the path, an invalid shape, another variable of the model with
  // the same path.
  Status Check() const;
  // Whether functions may read this value instead of the variable. Error: another type.
  Status CheckReadsAs(Var value) const;

 protected:
  // An f32 variable; its path is that of `module`, ".", and `name`. Without a module it belongs to
  // no model.
  Variable(const Module* module, const std::string& name, Shape shape, Initializer initializer,
           Role role);
  ~Variable();

  // Must be called when the variable changes as `what` says.
  void Changed(const char* what);

  Initializer initializer_;
  bool is_trainable_ = true;
  std::function<Var(Var)> reads_as_;  // empty: as itself

 private:
  friend class Trace;

  std::shared_ptr<ModelTree> tree_;  // null without a module
  std::string module_path_;
  std::string path_;
  Shape shape_;
  Role role_;
  int64_t id_;
  // What the graphs and eager sessions that have read it are told.
  mutable std::vector<std::weak_ptr<LateChange>> readers_;
};

}  // namespace zg::nn
