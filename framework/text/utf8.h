// UTF-8, parsed as untrusted input: no surrogates, no overlong forms, nothing above U+10FFFF (the
// Unicode Standard, table 3-7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zg {

struct Utf8Character {
  uint32_t code = 0;
  int bytes = 0;  // 1 to 4; 0: there is no valid character here
};

// The first character of `text`.
Utf8Character FirstUtf8Character(std::string_view text);

// The length in bytes of the longest valid prefix of `text`.
size_t ValidUtf8Bytes(std::string_view text);

// The number of bytes of `text` before the first place where a valid character begins.
size_t InvalidUtf8Bytes(std::string_view text);

void AppendUtf8(uint32_t code, std::string* text);

// Unicode's White_Space, which is the meaning of \s in the tokenizers.
bool IsUnicodeSpace(uint32_t code);

}  // namespace zg
