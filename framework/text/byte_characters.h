// The characters that represent bytes in the files of byte-level tokenizers. GPT-2 writes a token
// as text without spaces or control characters: a printable byte of Latin-1 as itself, the 68
// others as U+0100, U+0101, ... in order; a space is U+0120.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zg {

// The code point of the character that represents `byte`.
uint32_t CharacterOfByte(uint8_t byte);

std::string BytesAsCharacters(std::string_view bytes);

// The reverse; nothing if a character represents no byte.
std::optional<std::string> CharactersAsBytes(std::string_view characters);

}  // namespace zg
