// The Unicode normal form C, by utf8proc (Unicode 15): characters and their accents as one. The
// form of a text does not depend on the version, except for characters that are new in it; Hugging
// Face's tokenizers 0.23 does not know the 98 marks that are newer than Unicode 9.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

// Whether `text`, valid UTF-8, is certainly in form C: all of it is below U+0300.
bool IsSurelyNfc(std::string_view text);

// `text`, valid UTF-8, in form C.
StatusOr<std::string> ToNfc(std::string_view text);

}  // namespace zg
