// Element types of tensors and their text names (`f32`, `bf16`, `f16`, `i64`, `i32`, `u8`, `bool`).
// An element of bool is a byte, 0 for false; computed values are 0 or 1, inputs may have any value.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

enum class DType { kF32, kBF16, kF16, kI64, kI32, kU8, kBool };

int64_t SizeOf(DType dtype);  // bytes of one element
std::string_view DTypeName(DType dtype);
StatusOr<DType> ParseDType(std::string_view name);
bool IsFloat(DType dtype);
// Whether the dtype can hold the number, but for rounding and the size of floats.
bool CanHold(DType dtype, double number);

}  // namespace zg
