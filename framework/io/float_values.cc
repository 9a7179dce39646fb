#include "framework/io/float_values.h"

#include <cmath>
#include <cstring>

#include "framework/base/check.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

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
