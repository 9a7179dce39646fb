// The bytes of a tensor that a node of the op literal spells out.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "framework/ir/attribute.h"

namespace zg {

inline std::vector<char> LiteralBytes(const ir::Attributes& attributes) {
  const std::vector<int64_t>& numbers = attributes.Ints("numbers");
  const bool is_f32 = attributes.DType("dtype") == DType::kF32;
  const size_t size = is_f32 ? sizeof(uint32_t) : sizeof(int64_t);
  std::vector<char> bytes(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) {  // little-endian: the low bytes come first
    std::memcpy(bytes.data() + i * size, &numbers[i], size);
  }
  return bytes;
}

}  // namespace zg
