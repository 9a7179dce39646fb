// Binary search, on every device.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/math/any_element.h"

namespace zg {

// The elements of an ascending sequence that come before the value: those below it, and with `right`
// those equal to it. NaN is above all numbers.
template <typename T>
ZG_HOST_DEVICE ZG_INLINE int64_t CountBefore(const T* sorted, int64_t size, T value, bool right) {
  const auto number = NumberOf(value);
  int64_t begin = 0, end = size;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const auto element = NumberOf(sorted[middle]);
    const bool element_is_nan = element != element, number_is_nan = number != number;
    const bool is_below = !element_is_nan && (number_is_nan || element < number);
    const bool is_equal = element == number || (element_is_nan && number_is_nan);
    const bool is_before = is_below || (right && is_equal);
    begin = is_before ? middle + 1 : begin;
    end = is_before ? end : middle;
  }
  return begin;
}

}  // namespace zg
