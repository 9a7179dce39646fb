// StoredValues: converts the values of one tensor from file to file, chunk by chunk: to another
// dtype, with its two dims swapped, with more or fewer rows.
#pragma once

#include <cstdint>

#include "framework/io/safetensors_dtype.h"
#include "framework/io/safetensors_writer.h"

namespace zg::checkpoint_tool {

struct StoredValues {
  SafetensorsDType dtype = SafetensorsDType::kF32;  // F32, F16 or BF16
  const uint8_t* data = nullptr;                    // row-major; must outlive the source
  int64_t rows = 1;
  int64_t columns = 0;  // or all elements, if there is nothing to transpose
};

// Gives the writer the values as `dtype`, column by column with `is_transposed`. Elements beyond
// the last one are zeros. The same dtype keeps every bit. Error: a value that `dtype` cannot hold.
TensorSource SourceOf(const StoredValues& values, bool is_transposed, SafetensorsDType dtype);

}  // namespace zg::checkpoint_tool
