// The windows of max_pool2d, for the kernels of all devices.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/kernel.h"
#include "framework/tensor/half.h"

namespace zg {

struct PoolShape {
  PoolShape(const ir::Attributes& attributes, const Shape& x, const Shape& y)
      : planes(x.dim(0) * x.dim(1)) {
    for (int i = 0; i < 2; ++i) {
      in[i] = x.dim(2 + i);
      out[i] = y.dim(2 + i);
      kernel[i] = attributes.Ints("kernel")[i];
      stride[i] = out[i] == 1 ? 1 : attributes.Ints("stride")[i];
      padding[i] = attributes.Ints("padding")[i];
      dilation[i] = attributes.Ints("dilation")[i];
    }
  }

  // The first of the largest elements of the window of pixel (i, j), and its index in the plane; a
  // NaN is larger than all numbers, and the last NaN counts.
  struct Largest {
    float value;
    int64_t index;
  };
  template <typename T>
  ZG_HOST_DEVICE ZG_INLINE Largest LargestOf(const T* plane, int64_t i, int64_t j) const {
    Largest largest = {-__builtin_inff(), -1};
    for (int64_t k = 0; k < kernel[0]; ++k) {
      const int64_t h = i * stride[0] - padding[0] + k * dilation[0];
      if (h < 0 || h >= in[0]) continue;
      for (int64_t l = 0; l < kernel[1]; ++l) {
        const int64_t w = j * stride[1] - padding[1] + l * dilation[1];
        if (w < 0 || w >= in[1]) continue;
        const float value = ToF32(plane[h * in[1] + w]);
        const bool is_nan = !(value >= value);
        if (largest.index < 0 || value > largest.value || is_nan) largest = {value, h * in[1] + w};
      }
    }
    return largest;
  }

  int64_t planes;
  // Height and width.
  int64_t in[2];
  int64_t out[2];
  int64_t kernel[2];
  int64_t stride[2];
  int64_t padding[2];
  int64_t dilation[2];
};

}  // namespace zg
