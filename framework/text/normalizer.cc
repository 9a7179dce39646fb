#include "framework/text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace zg {
namespace {

// The library needs 4 bytes per character beside the text.
constexpr size_t kBlockBytes = 1 << 16;

// The end of a block from `begin`: before an ASCII character, which never combines with preceding
// characters.
size_t EndOfBlock(std::string_view text, size_t begin) {
  size_t end = std::min(text.size(), begin + kBlockBytes);
  while (end < text.size() && static_cast<uint8_t>(text[end]) >= 0x80) ++end;
  return end;
}

}  // namespace

bool IsSurelyNfc(std::string_view text) {
  // U+0300 is CC 80.
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<uint8_t>(byte) < 0xCC; });
}

StatusOr<std::string> ToNfc(std::string_view text) {
  std::string normal;
  normal.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = EndOfBlock(text, begin);
    const std::string_view block = text.substr(begin, end - begin);
    begin = end;
    if (IsSurelyNfc(block)) {
      normal += block;
      continue;
    }
    utf8proc_uint8_t* characters = nullptr;
    const utf8proc_ssize_t bytes =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(block.data()),
                     static_cast<utf8proc_ssize_t>(block.size()), &characters,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(characters, std::free);
    if (bytes < 0) return InvalidArgument("NFC: {}", utf8proc_errmsg(bytes));
    normal.append(reinterpret_cast<const char*>(characters), static_cast<size_t>(bytes));
  }
  return normal;
}

}  // namespace zg
