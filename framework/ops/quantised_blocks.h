// States of 8 bits: blocks of elements that follow each other in a tensor have a code each, and one
// f32 scale together. Where ranks have parts of a bucket, no part cuts a block.
#pragma once

#include <cstdint>

namespace zg {

inline constexpr int64_t kQuantisedBlock = 256;  // elements; the last of a tensor may have fewer

constexpr int64_t NumQuantisedBlocks(int64_t elements) {
  return (elements + kQuantisedBlock - 1) / kQuantisedBlock;
}

}  // namespace zg
