#include "framework/ir/op_registry.h"

#include <fmt/format.h>

#include "framework/base/check.h"

namespace zg::ir {

OpRegistry& OpRegistry::Global() {
  static OpRegistry registry;
  return registry;
}

void OpRegistry::Register(OpDef op) {
  ZG_CHECK(op.infer_shape != nullptr, "op {} has no shape rule", op.name);
  const std::string name = op.name;
  ZG_CHECK(ops_.emplace(name, std::move(op)).second, "op {} is registered twice", name);
}

const OpDef* OpRegistry::Find(std::string_view name) const {
  const auto found = ops_.find(name);
  return found == ops_.end() ? nullptr : &found->second;
}

std::vector<const OpDef*> OpRegistry::All() const {
  std::vector<const OpDef*> all;
  for (const auto& [name, op] : ops_) all.push_back(&op);
  return all;
}

}  // namespace zg::ir
