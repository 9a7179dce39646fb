#include "framework/io/float_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "framework/base/check.h"
#include "framework/io/mapped_file.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Values read through one window.
constexpr int64_t kMappedPieceValues = int64_t{1} << 18;

// Calls f with a zero of the C++ type.
template <typename F>
decltype(auto) WithType(SafetensorsDType dtype, const F& f) {
  ZG_CHECK(IsFloatValue(dtype), "{} is not converted", SafetensorsDTypeName(dtype));
  if (dtype == SafetensorsDType::kBF16) return f(BFloat16());
  if (dtype == SafetensorsDType::kF16) return f(Float16());
  return f(float());
}

}  // namespace

bool IsFloatValue(SafetensorsDType dtype) {
  return dtype == SafetensorsDType::kF32 || dtype == SafetensorsDType::kF16 ||
         dtype == SafetensorsDType::kBF16;
}

void ReadFloatValues(SafetensorsDType dtype, const uint8_t* bytes, size_t count, float* values) {
  WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
      values[i] = ToF32(value);
    }
  });
}

void ReadMappedFloatValues(SafetensorsDType dtype, const uint8_t* tensor, int64_t begin,
                           int64_t end, float* values) {
  const int64_t value_bytes = BitsOf(dtype) / 8;
  for (int64_t first = begin; first < end; first += kMappedPieceValues) {
    const int64_t count = std::min(end - first, kMappedPieceValues);
    const MappedWindow window(tensor + first * value_bytes, count * value_bytes);
    ReadFloatValues(dtype, window.data(), count, values + (first - begin));
  }
}

Status WriteFloatValues(SafetensorsDType dtype, const float* values, size_t count, uint8_t* bytes) {
  return WithType(dtype, [&](auto zero) -> Status {
    using T = decltype(zero);
    for (size_t i = 0; i < count; ++i) {
      const T value = FromF32<T>(values[i]);
      if (std::isfinite(values[i]) && !std::isfinite(ToF32(value))) {
        return InvalidArgument("the value {} is beyond {}; choose another dtype", values[i],
                               SafetensorsDTypeName(dtype));
      }
      std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
    }
    return Status::Ok();
  });
}

}  // namespace zg
