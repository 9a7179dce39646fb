// The element types of the safetensors format and their names in a header (`F32`, `BF16`, `BOOL`).
#pragma once

#include <optional>
#include <string_view>

namespace zg {

enum class SafetensorsDType {
  kF32,
  kF16,
  kBF16,
  kF64,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E5M2Fnuz,
  kF8E4M3Fnuz,
  kF6E2M3,
  kF6E3M2,
  kF4,
  kC64,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
};

// Bits of one element: a multiple of 8 except for the 6- and 4-bit floats, which are stored packed.
int BitsOf(SafetensorsDType dtype);
std::string_view SafetensorsDTypeName(SafetensorsDType dtype);
// Names are case-sensitive; nothing if the format does not have the name.
std::optional<SafetensorsDType> ParseSafetensorsDType(std::string_view name);

}  // namespace zg
