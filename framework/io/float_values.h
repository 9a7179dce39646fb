// Floating-point values of safetensors files, F32, F16 or BF16: reading them as f32 and rounding
// f32 to them. Bytes in files are little-endian and need not be aligned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/status.h"
#include "framework/io/safetensors_dtype.h"

namespace zg {

// Whether the functions below support the type.
bool IsFloatValue(SafetensorsDType dtype);

// Reads values [0, count) of `bytes`, exactly.
void ReadFloatValues(SafetensorsDType dtype, const uint8_t* bytes, size_t count, float* values);

// Reads values [begin, end) of a MappedFile's tensor whose first is at `tensor`, piece by piece:
// the pages read do not stay in memory.
void ReadMappedFloatValues(SafetensorsDType dtype, const uint8_t* tensor, int64_t begin,
                           int64_t end, float* values);

// Rounds to the nearest, ties to even. Error: a finite value beyond the finite range of `dtype`.
Status WriteFloatValues(SafetensorsDType dtype, const float* values, size_t count, uint8_t* bytes);

}  // namespace zg
