// StoredValues: how the values of one tensor go from file to file: another dtype, the other order
// of two dims, more or fewer rows. A chunk at a time.
#pragma once

#include <cstdint>

#include "framework/io/safetensors_dtype.h"
#include "framework/io/safetensors_writer.h"

namespace zg::checkpoint_tool {

struct StoredValues {
  SafetensorsDType dtype = SafetensorsDType::kF32;  // F32, F16 or BF16
  const uint8_t* data = nullptr;                    // row-major; must outlive the source
  int64_t rows = 1;
  int64_t columns = 0;  // or all elements, where there is nothing to transpose
};

// Gives the writer the values as `dtype`, with `is_transposed` column by column. Elements beyond
// the last one are zeros. The same dtype keeps every bit. Error: a value that `dtype` cannot hold.
TensorSource SourceOf(const StoredValues& values, bool is_transposed, SafetensorsDType dtype);

}  // namespace zg::checkpoint_tool
