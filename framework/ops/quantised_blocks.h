// 8-bit states: each element of a block of consecutive elements of a tensor has a code, and the
// block has one f32 scale. If ranks have parts of a bucket, no part cuts a block.
#pragma once

#include <cstdint>

namespace zg {

inline constexpr int64_t kQuantisedBlock = 256;  // elements; the last of a tensor may have fewer

constexpr int64_t NumQuantisedBlocks(int64_t elements) {
  return (elements + kQuantisedBlock - 1) / kQuantisedBlock;
}

}  // namespace zg
