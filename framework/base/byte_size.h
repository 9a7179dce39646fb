// Parses sizes as people type them.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

// "500M", "8G" or "8GB": powers of 1000, as in the papers; "8GiB": powers of 1024; "1.5G"; "4096".
// `who` begins the error.
StatusOr<int64_t> ParseByteSize(std::string_view who, std::string_view text);

}  // namespace zg
