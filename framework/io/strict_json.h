// JSON of checkpoints and tokenizers, parsed as untrusted input: no duplicate keys, no deep
// nesting, nothing before or after the single object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

// Reads the file at `path`, which must be a single object. Errors name the file.
StatusOr<nlohmann::json> ReadStrictJson(const std::string& path);

// Error: more bytes than any of these files has.
Status CheckJsonBytes(const std::string& path, uint64_t bytes);

// The same for text; `path` is only used in messages.
StatusOr<nlohmann::json> ParseStrictJson(const std::string& path, std::string_view text);

}  // namespace zg
