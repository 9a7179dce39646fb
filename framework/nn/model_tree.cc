#include "framework/nn/model_tree.h"

#include <algorithm>

#include "framework/nn/module.h"
#include "framework/nn/variable.h"

namespace zg::nn {
namespace {

bool IsWithin(std::string_view path, std::string_view module_path) {
  return module_path.empty() || path == module_path ||
         (path.size() > module_path.size() && path[module_path.size()] == '.' &&
          path.substr(0, module_path.size()) == module_path);
}

// Searches from the back: members are destroyed in the reverse order of their construction.
template <typename T>
void EraseLast(std::vector<T*>* members, const T* member) {
  members->erase(std::next(std::find(members->rbegin(), members->rend(), member)).base());
}

}  // namespace

void ModelTree::Add(Module* module) { modules_.push_back(module); }

void ModelTree::Remove(const Module* module) { EraseLast(&modules_, module); }

void ModelTree::Add(Variable* variable) {
  variables_.push_back(variable);
  by_path_.emplace(variable->path(), variable);
}

void ModelTree::Remove(const Variable* variable) {
  EraseLast(&variables_, variable);
  const auto [begin, end] = by_path_.equal_range(variable->path());
  by_path_.erase(
      std::find_if(begin, end, [&](const auto& entry) { return entry.second == variable; }));
}

std::vector<Module*> ModelTree::ModulesOf(std::string_view module_path) const {
  std::vector<Module*> within;
  for (Module* module : modules_) {
    if (IsWithin(module->path(), module_path)) within.push_back(module);
  }
  return within;
}

std::vector<Variable*> ModelTree::VariablesOf(std::string_view module_path) const {
  std::vector<Variable*> within;
  for (Variable* variable : variables_) {
    if (IsWithin(variable->module_path(), module_path)) within.push_back(variable);
  }
  return within;
}

Status ModelTree::CheckUnique(const Variable& variable) const {
  const auto [begin, end] = by_path_.equal_range(variable.path());
  const auto other =
      std::find_if(begin, end, [&](const auto& entry) { return entry.second != &variable; });
  if (other == end) return Status::Ok();
  return InvalidArgument(
      "two parameters or buffers of the model are named '{}': one of module '{}', one of module "
      "'{}'; give one of them, or its module, another name",
      variable.path(), other->second->module_path(), variable.module_path());
}

}  // namespace zg::nn
