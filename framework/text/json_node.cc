#include "framework/text/json_node.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "framework/io/safetensors_header.h"

namespace zg {
namespace {

const nlohmann::json kNull;

std::string Described(const nlohmann::json& value) {
  if (value.is_null()) return "nothing";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return value.is_string() ? QuoteForMessage(value.get_ref<const std::string&>()) : value.dump();
}

}  // namespace

Status JsonNode::Error(std::string_view expected) const {
  return InvalidArgument("{}: {}got {}, expected {}", *path_, key_.empty() ? "" : key_ + ": ",
                         Described(*value_), expected);
}

StatusOr<JsonNode> JsonNode::Member(const std::string& name) const {
  if (!value_->is_object()) return Error("an object");
  const auto found = value_->find(name);
  return JsonNode(path_, key_.empty() ? name : key_ + "." + name,
                  found == value_->end() ? &kNull : &*found);
}

StatusOr<JsonNode> JsonNode::Element(size_t index) const {
  if (!value_->is_array() || index >= value_->size()) return Error("an array");
  return JsonNode(path_, fmt::format("{}[{}]", key_, index), &(*value_)[index]);
}

StatusOr<std::string> JsonNode::Text() const {
  if (!value_->is_string()) return Error("a string");
  return value_->get<std::string>();
}

StatusOr<bool> JsonNode::Boolean() const {
  if (!value_->is_boolean()) return Error("true or false");
  return value_->get<bool>();
}

StatusOr<uint32_t> JsonNode::Number() const {
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() >= uint64_t{1} << 31) {
    return Error("a whole number from 0 to 2^31 - 1");
  }
  return value_->get<uint32_t>();
}

StatusOr<size_t> JsonNode::Size() const {
  if (!value_->is_array()) return Error("an array");
  return value_->size();
}

Status JsonNode::HasOnly(std::initializer_list<std::string_view> names) const {
  if (!value_->is_object()) return Error("an object");
  for (const auto& [name, member] : value_->items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return InvalidArgument("{}: {}got the key {}, expected one of {}", *path_,
                           key_.empty() ? "" : key_ + ": ", QuoteForMessage(name),
                           fmt::join(names, ", "));
  }
  return Status::Ok();
}

}  // namespace zg
