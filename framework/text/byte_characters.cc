#include "framework/text/byte_characters.h"

#include <array>

#include "framework/text/utf8.h"

namespace zg {
namespace {

constexpr uint32_t kNumCharacters = 256 + 68;

struct Tables {
  std::array<uint32_t, 256> characters = {};
  std::array<int16_t, kNumCharacters> bytes = {};  // -1: none

  Tables() {
    bytes.fill(-1);
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool is_printable =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      characters[byte] = is_printable ? byte : next++;
      bytes[characters[byte]] = static_cast<int16_t>(byte);
    }
  }
};

const Tables& AllTables() {
  static const Tables tables;
  return tables;
}

}  // namespace

uint32_t CharacterOfByte(uint8_t byte) { return AllTables().characters[byte]; }

std::string BytesAsCharacters(std::string_view bytes) {
  std::string characters;
  for (const char byte : bytes) {
    AppendUtf8(CharacterOfByte(static_cast<uint8_t>(byte)), &characters);
  }
  return characters;
}

std::optional<std::string> CharactersAsBytes(std::string_view characters) {
  std::string bytes;
  while (!characters.empty()) {
    const Utf8Character first = FirstUtf8Character(characters);
    if (first.bytes == 0 || first.code >= kNumCharacters) return std::nullopt;
    const int byte = AllTables().bytes[first.code];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    characters.remove_prefix(first.bytes);
  }
  return bytes;
}

}  // namespace zg
