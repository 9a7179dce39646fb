// Converts the expressions of a tokenizer.json, which are written for Oniguruma (Ruby's syntax), to
// PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

// The same expression for PCRE2. Accepts syntax that means the same in both, and translates \s, \S,
// \d, \D and \uHHHH. Everything else (\w, \h, \b, ^, $, look-behind, nested classes, {n}+, ...)
// means something else to PCRE2, or may, and is an error that quotes it.
StatusOr<std::string> PcreOfOniguruma(std::string_view pattern);

}  // namespace zg
