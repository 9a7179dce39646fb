#include "framework/text/utf8.h"

#include <cstring>

namespace zg {
namespace {

constexpr uint64_t kHighBits = 0x8080808080808080;

}  // namespace

Utf8Character FirstUtf8Character(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xC2 || first > 0xF4) return {};
  const int bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < static_cast<size_t>(bytes)) return {};
  // The range of the second byte excludes overlong forms, surrogates and codes above U+10FFFF.
  const uint32_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint32_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return {};
  uint32_t code = first & (0x7Fu >> bytes);
  for (int i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {code, bytes};
}

size_t ValidUtf8Bytes(std::string_view text) {
  size_t valid = 0;
  while (valid < text.size()) {
    uint64_t word = 0;
    if (text.size() - valid >= sizeof(word)) {
      std::memcpy(&word, text.data() + valid, sizeof(word));
      if ((word & kHighBits) == 0) {
        valid += sizeof(word);
        continue;
      }
    }
    const Utf8Character character = FirstUtf8Character(text.substr(valid));
    if (character.bytes == 0) break;
    valid += character.bytes;
  }
  return valid;
}

size_t InvalidUtf8Bytes(std::string_view text) {
  size_t invalid = 0;
  while (invalid < text.size() && FirstUtf8Character(text.substr(invalid)).bytes == 0) ++invalid;
  return invalid;
}

void AppendUtf8(uint32_t code, std::string* text) {
  if (code < 0x80) {
    text->push_back(static_cast<char>(code));
    return;
  }
  const int following = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const uint32_t mark = following == 1 ? 0xC0 : following == 2 ? 0xE0 : 0xF0;
  text->push_back(static_cast<char>(mark | code >> 6 * following));
  for (int i = following - 1; i >= 0; --i) {
    text->push_back(static_cast<char>(0x80 | (code >> 6 * i & 0x3F)));
  }
}

bool IsUnicodeSpace(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

}  // namespace zg
