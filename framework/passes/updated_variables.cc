#include "framework/passes/updated_variables.h"

#include <algorithm>

namespace zg {

bool IsUpdated(const ir::Value& variable) {
  return std::any_of(variable.users.begin(), variable.users.end(), [](const ir::Node* user) {
    return user->op->traits.kind == ir::OpKind::kAssign;
  });
}

}  // namespace zg
