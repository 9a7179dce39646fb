// JSON of checkpoints and tokenizers, read without trust: no duplicate keys, no deep nesting,
// nothing before or after the one object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

// The object that the whole file at `path` is. Errors name the file.
StatusOr<nlohmann::json> ReadStrictJson(const std::string& path);

// The same for text; `path` only serves the messages.
StatusOr<nlohmann::json> ParseStrictJson(const std::string& path, std::string_view text);

}  // namespace zg
