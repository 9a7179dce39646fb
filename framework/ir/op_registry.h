// OpRegistry: all ops of the process by name. RegisterAllOps() fills it once
// (framework/ops/register_all_ops.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/op_def.h"

namespace zg::ir {

class OpRegistry {
 public:
  static OpRegistry& Global();

  void Register(OpDef op);                         // a second op of the same name is a CHECK
                                                   // failure
  const OpDef* Find(std::string_view name) const;  // null if there is none
  std::vector<const OpDef*> All() const;           // in name order

 private:
  std::map<std::string, OpDef, std::less<>> ops_;
};

}  // namespace zg::ir
