// Module: a part of a model with a name, parameters and a forward function.
//
//   struct Classifier : zg::nn::Module {
//     zg::nn::Linear hidden{this, "hidden", 256, 128};
//     zg::nn::Linear output{this, "output", 128, 10};
//     zg::Var forward(zg::Var x) { return output(zg::relu(hidden(x))); }  // x (B, 256) -> (B, 10)
//   };
//
// Modules form a tree: each is constructed with its parent and its name in the parent. The path of
// a module, "blocks.3.attention.qkv", prefixes the names of its parameters and its error messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/nn/buffer.h"
#include "framework/nn/parameter.h"
#include "framework/nn/var.h"

namespace zg::nn {

class Module;

struct NamedModule {
  std::string name;  // its path
  Module* module;
};

class Module {
 public:
  // A module without a parent is the root of a model; its name is usually empty.
  explicit Module(const Module* parent = nullptr, const std::string& name = "");
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Runs forward; the nodes that it appends belong to this module. A module with other arguments
  // has an operator() of its own, which begins with `Scope scope(*this);`.
  Var operator()(Var x);

  const std::string& path() const { return path_; }  // "" for a root without a name

  // The parameters of this module and its descendants, by path, in the order of construction. They
  // are known before any graph uses them. A graph's order is that of their first use.
  std::vector<NamedParameter> named_parameters() const;
  int64_t num_parameters() const;                     // total number of elements
  std::vector<NamedParameter> named_buffers() const;  // likewise

  // The parameters and buffers themselves, in the same order.
  std::vector<Parameter*> parameters() const;
  std::vector<Buffer*> buffers() const;

  // This module and its descendants, in the order of construction: each before its children.
  std::vector<NamedModule> named_modules() const;

  // Calls the function with each of them:
  //   model.apply([](zg::nn::Module& module) {
  //     auto* linear = dynamic_cast<zg::nn::Linear*>(&module);
  //     if (linear != nullptr) linear->weight.set_initializer(zg::Initializer::Normal(0.02));
  //   });
  void apply(const std::function<void(Module&)>& function) const;

  // While a Scope exists, new nodes belong to its module.
  class Scope {
   public:
    explicit Scope(const Module& module);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::string previous_;
  };

 protected:
  virtual Var forward(Var x);

  // Reports an error from forward and returns an empty Var: `return fail(...)`. The graph keeps the
  // error with the path of this module.
  Var fail(const Status& status) const;

 private:
  friend class Variable;

  // Variables of this role, in the order of construction.
  std::vector<Variable*> Variables(Role role) const;

  std::string path_;
  std::shared_ptr<ModelTree> tree_;  // the root's tree
};

std::string JoinPath(const std::string& parent, const std::string& name);

}  // namespace zg::nn
