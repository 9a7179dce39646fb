#include "tools/checkpoint/stored_values.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "framework/io/float_values.h"

namespace zg::checkpoint_tool {
namespace {

// Copies elements [begin, begin + count) of the result, still in the file's dtype.
void Gather(const StoredValues& values, bool is_transposed, uint64_t begin, size_t count,
            uint8_t* target) {
  const size_t element_bytes = BitsOf(values.dtype) / 8;
  const uint64_t elements = static_cast<uint64_t>(values.rows) * values.columns;
  const size_t there = begin >= elements ? 0 : std::min<uint64_t>(count, elements - begin);
  std::memset(target + there * element_bytes, 0, (count - there) * element_bytes);
  if (there == 0) return;
  if (!is_transposed) {
    std::memcpy(target, values.data + begin * element_bytes, there * element_bytes);
    return;
  }
  uint64_t row = begin % values.rows;
  uint64_t column = begin / values.rows;
  for (size_t i = 0; i < there; ++i) {
    std::memcpy(target + i * element_bytes,
                values.data + (row * values.columns + column) * element_bytes, element_bytes);
    if (++row == static_cast<uint64_t>(values.rows)) {
      row = 0;
      ++column;
    }
  }
}

}  // namespace

TensorSource SourceOf(const StoredValues& values, bool is_transposed, SafetensorsDType dtype) {
  return [=](uint64_t offset_bytes, uint8_t* chunk, size_t size_bytes) -> Status {
    const size_t element_bytes = BitsOf(dtype) / 8;
    const uint64_t begin = offset_bytes / element_bytes;
    const size_t count = size_bytes / element_bytes;
    if (dtype == values.dtype) {
      Gather(values, is_transposed, begin, count, chunk);
      return Status::Ok();
    }
    std::vector<uint8_t> stored(count * (BitsOf(values.dtype) / 8));
    Gather(values, is_transposed, begin, count, stored.data());
    std::vector<float> floats(count);
    ReadFloatValues(values.dtype, stored.data(), count, floats.data());
    return WriteFloatValues(dtype, floats.data(), count, chunk);
  };
}

}  // namespace zg::checkpoint_tool
