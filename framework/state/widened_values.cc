#include "framework/state/widened_values.h"

#include <algorithm>

#include "framework/tensor/half.h"

namespace zg {

std::vector<float> WidenedValues(DType dtype, const std::byte* data, int64_t count) {
  if (dtype == DType::kU8) {
    const auto* const codes = reinterpret_cast<const uint8_t*>(data);
    return std::vector<float>(codes, codes + count);
  }
  std::vector<float> values(count);
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* const stored = reinterpret_cast<const T*>(data);
    std::transform(stored, stored + count, values.begin(), [](T value) { return ToF32(value); });
  });
  return values;
}

}  // namespace zg
