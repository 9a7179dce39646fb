// The text of a pass with its options, as PassRegistry reads it: `bucketing(bucket_bytes=64)`.
#pragma once

#include <string>
#include <string_view>

#include "framework/ir/attribute.h"

namespace zg::testing {

std::string PassName(std::string_view pass);

// The options in parentheses after the name; empty if there are none.
ir::Attributes PassOptions(std::string_view pass);

}  // namespace zg::testing
