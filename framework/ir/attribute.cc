#include "framework/ir/attribute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

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
  std::string operator()(DType value) const { return Quote(std::string(DTypeName(value))); }
  std::string operator()(const Shape& value) const { return value.ToString(); }
  std::string operator()(Sbp value) const { return Quote(value.ToString()); }
  std::string operator()(const NdSbp& value) const { return Quote(zg::ToString(value)); }
  std::string operator()(Role value) const { return Quote(std::string(EnumName(value))); }
};

template <typename T>
StatusOr<Attribute> AsAttribute(StatusOr<T> value) {
  if (!value.ok()) return value.status();
  return Attribute(*std::move(value));
}

// The value of a literal, which has a type that the text can show, converted to the type of the
// example.
StatusOr<Attribute> FromLiteral(const Attribute& literal, const Attribute& example) {
  if (const auto* text = std::get_if<std::string>(&literal)) {
    if (std::holds_alternative<DType>(example)) return AsAttribute(ParseDType(*text));
    if (std::holds_alternative<Sbp>(example)) return AsAttribute(ParseSbp(*text));
    if (std::holds_alternative<NdSbp>(example)) return AsAttribute(ParseNdSbp(*text));
    if (std::holds_alternative<Role>(example)) return AsAttribute(ParseRole(*text));
  }
  if (const auto* dims = std::get_if<std::vector<int64_t>>(&literal)) {
    if (std::holds_alternative<Shape>(example)) return Attribute(Shape(*dims));
  }
  return InvalidArgument("got {}, expected the type of {}", ToString(literal), ToString(example));
}

}  // namespace

std::string ToString(const Attribute& attribute) { return std::visit(Printer(), attribute); }

Attributes::Attributes() {
  static const auto* const none = new std::shared_ptr<const Items>(std::make_shared<Items>());
  items_ = *none;
}

Attributes::Attributes(std::initializer_list<std::pair<const std::string, Attribute>> items)
    : items_(std::make_shared<Items>(items)) {}

bool Attributes::Has(std::string_view name) const { return items_->find(name) != items_->end(); }

void Attributes::Set(std::string name, Attribute value) {
  auto items = std::make_shared<Items>(*items_);
  (*items)[std::move(name)] = std::move(value);
  items_ = std::move(items);
}

bool operator==(const Attributes& a, const Attributes& b) {
  return a.items_ == b.items_ || *a.items_ == *b.items_;
}

const Attribute& Attributes::Find(std::string_view name) const {
  const auto found = items_->find(name);
  ZG_CHECK(found != items_->end(), "no attribute '{}'", name);
  return found->second;
}

void Attributes::FailOfOtherType(std::string_view name) const {
  ZG_CHECK(false, "attribute '{}' is {}, which is of another type than asked for", name,
           ToString(Find(name)));
  std::abort();
}

Status CompleteAttributes(const std::vector<AttributeDef>& defs, Attributes* attributes) {
  std::vector<std::pair<std::string, Attribute>> converted;
  for (const auto& [name, value] : attributes->items()) {
    const auto def = std::find_if(
        defs.begin(), defs.end(),
        [&name = name](const AttributeDef& candidate) { return candidate.name == name; });
    if (def == defs.end()) return InvalidArgument("unknown attribute '{}'", name);
    if (def->example.index() == value.index()) continue;
    StatusOr<Attribute> typed = FromLiteral(value, def->example);
    if (!typed.ok()) return InvalidArgument("attribute '{}': {}", name, typed.status().message());
    converted.emplace_back(name, *std::move(typed));
  }
  for (auto& [name, value] : converted) attributes->Set(name, std::move(value));
  for (const AttributeDef& def : defs) {
    if (attributes->Has(def.name)) continue;
    if (def.required) return InvalidArgument("attribute '{}' is missing", def.name);
    attributes->Set(def.name, def.example);
  }
  return Status::Ok();
}

}  // namespace zg::ir
