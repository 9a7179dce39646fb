#include "framework/runtime/non_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/tensor/half.h"

namespace zg {
namespace {

template <typename Matches>
std::optional<int64_t> FirstElement(DType dtype, const void* data, int64_t num_elements,
                                    const Matches& matches) {
  if (!IsFloat(dtype)) return std::nullopt;
  int64_t index = num_elements;
  WithFloatType(dtype, [&](auto zero) {
    const auto* const values = static_cast<const decltype(zero)*>(data);
    index = std::find_if(values, values + num_elements,
                         [&](auto value) { return matches(ToF32(value)); }) -
            values;
  });
  if (index == num_elements) return std::nullopt;
  return index;
}

}  // namespace

std::optional<int64_t> FirstNonFinite(DType dtype, const void* data, int64_t num_elements) {
  return FirstElement(dtype, data, num_elements, [](float x) { return !std::isfinite(x); });
}

std::optional<int64_t> FirstNan(DType dtype, const void* data, int64_t num_elements) {
  return FirstElement(dtype, data, num_elements, [](float x) { return std::isnan(x); });
}

std::string ElementText(DType dtype, const void* data, int64_t index) {
  float value = 0;
  WithFloatType(dtype,
                [&](auto zero) { value = ToF32(static_cast<const decltype(zero)*>(data)[index]); });
  return std::isnan(value) ? "nan" : fmt::format("{}", value);  // whatever the sign of a NaN
}

}  // namespace zg
