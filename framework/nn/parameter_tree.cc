#include "framework/nn/parameter_tree.h"

#include <algorithm>

#include "framework/nn/parameter.h"

namespace zg::nn {
namespace {

bool IsWithin(std::string_view path, std::string_view module_path) {
  return module_path.empty() || path == module_path ||
         (path.size() > module_path.size() && path[module_path.size()] == '.' &&
          path.substr(0, module_path.size()) == module_path);
}

}  // namespace

void ParameterTree::Add(const Parameter* parameter) {
  parameters_.push_back(parameter);
  by_path_.emplace(parameter->path(), parameter);
}

void ParameterTree::Remove(const Parameter* parameter) {
  // From the back: members are destroyed in the reverse order of their construction.
  const auto found = std::find(parameters_.rbegin(), parameters_.rend(), parameter);
  parameters_.erase(std::next(found).base());
  const auto [begin, end] = by_path_.equal_range(parameter->path());
  by_path_.erase(
      std::find_if(begin, end, [&](const auto& entry) { return entry.second == parameter; }));
}

std::vector<const Parameter*> ParameterTree::Of(std::string_view module_path) const {
  std::vector<const Parameter*> within;
  for (const Parameter* parameter : parameters_) {
    if (IsWithin(parameter->module_path(), module_path)) within.push_back(parameter);
  }
  return within;
}

Status ParameterTree::CheckUnique(const Parameter& parameter) const {
  const auto [begin, end] = by_path_.equal_range(parameter.path());
  const auto other =
      std::find_if(begin, end, [&](const auto& entry) { return entry.second != &parameter; });
  if (other == end) return Status::Ok();
  return InvalidArgument(
      "two parameters of the model are named '{}': one of module '{}', one of module '{}'; give "
      "one of them, or its module, another name",
      parameter.path(), other->second->module_path(), parameter.module_path());
}

}  // namespace zg::nn
