// ModelTree: the modules, parameters and buffers of a model, as they are constructed and destroyed. All
// modules of one tree share it. Users of the API do not need it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg::nn {

class Module;
class Variable;

class ModelTree {
 public:
  void Add(Module* module);
  void Remove(const Module* module);
  void Add(Variable* variable);
  void Remove(const Variable* variable);

  // The module with this path, its descendants, and their variables, in the order of construction.
  std::vector<Module*> ModulesOf(std::string_view module_path) const;
  std::vector<Variable*> VariablesOf(std::string_view module_path) const;

  // Error: the tree has another variable with the same path.
  Status CheckUnique(const Variable& variable) const;

 private:
  std::vector<Module*> modules_;
  std::vector<Variable*> variables_;
  std::multimap<std::string_view, const Variable*> by_path_;
};

}  // namespace zg::nn
