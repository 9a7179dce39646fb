#include "framework/ir/attribute.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/base/check.h"
#include "framework/ir/quote.h"

namespace zg::ir {
namespace {

struct Printer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const {
    std::string text = fmt::format("{}", value);  // shortest form that reads back equal
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text;
  }
  std::string operator()(const std::string& value) const { return Quote(value); }
  std::string operator()(const std::vector<int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ","));
  }
};

}  // namespace

std::string ToString(const Attribute& attribute) { return std::visit(Printer(), attribute); }

const Attribute& Attributes::Find(std::string_view name) const {
  const auto found = items_.find(name);
  ZG_CHECK(found != items_.end(), "no attribute '{}'", name);
  return found->second;
}

Status CompleteAttributes(const std::vector<AttributeDef>& defs, Attributes* attributes) {
  for (const auto& [name, value] : attributes->items()) {
    const auto def = std::find_if(
        defs.begin(), defs.end(),
        [&name = name](const AttributeDef& candidate) { return candidate.name == name; });
    if (def == defs.end()) return InvalidArgument("unknown attribute '{}'", name);
    if (def->example.index() != value.index()) {
      return InvalidArgument("attribute '{}': got {}, expected the type of {}", name,
                             ToString(value), ToString(def->example));
    }
  }
  for (const AttributeDef& def : defs) {
    if (attributes->Has(def.name)) continue;
    if (def.required) return InvalidArgument("attribute '{}' is missing", def.name);
    attributes->Set(def.name, def.example);
  }
  return Status::Ok();
}

}  // namespace zg::ir
