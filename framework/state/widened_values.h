// WidenedValues: the elements of stored tensors as f32, which holds those of every stored dtype
// exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/tensor/dtype.h"

namespace zg {

// `data` holds `count` elements in f32, bf16, f16 or u8, in host memory.
std::vector<float> WidenedValues(DType dtype, const std::byte* data, int64_t count);

}  // namespace zg
