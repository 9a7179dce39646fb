// JsonNode: a value of a JSON file together with its place in the file, for messages:
// "tokenizer.json: model.type: got \"WordPiece\", expected \"BPE\"".
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

class JsonNode {
 public:
  // Both must outlive the node and its descendants.
  JsonNode(const std::string& path, const nlohmann::json& value) : path_(&path), value_(&value) {}

  const nlohmann::json& value() const { return *value_; }
  bool is_null() const { return value_->is_null(); }

  // An error about this value: what was found, and `expected`.
  Status Error(std::string_view expected) const;

  // The member of an object; null if there is none. Error: this is not an object.
  StatusOr<JsonNode> Member(const std::string& name) const;
  // The elements of an array.
  StatusOr<JsonNode> Element(size_t index) const;

  // Error: another type.
  StatusOr<std::string> Text() const;
  StatusOr<bool> Boolean() const;
  StatusOr<uint32_t> Number() const;  // an integer from 0 to 2^31 - 1
  StatusOr<size_t> Size() const;      // of an array

  // Error: this object has another member.
  Status HasOnly(std::initializer_list<std::string_view> names) const;

 private:
  JsonNode(const std::string* path, std::string key, const nlohmann::json* value)
      : path_(path), key_(std::move(key)), value_(value) {}

  const std::string* path_;
  std::string key_;  // "pre_tokenizer.pretokenizers[0].type"; "" at the top
  const nlohmann::json* value_;
};

}  // namespace zg
