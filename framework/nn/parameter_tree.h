// ParameterTree: the parameters of a model, as they are constructed and destroyed. All modules of
// one tree share it. Users of the API do not need it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg::nn {

class Parameter;

class ParameterTree {
 public:
  void Add(const Parameter* parameter);
  void Remove(const Parameter* parameter);

  // Those of the module with this path and of the modules in it, in the order of construction.
  std::vector<const Parameter*> Of(std::string_view module_path) const;

  // Error: the tree has another one of the same path.
  Status CheckUnique(const Parameter& parameter) const;

 private:
  std::vector<const Parameter*> parameters_;
  std::multimap<std::string_view, const Parameter*> by_path_;
};

}  // namespace zg::nn
