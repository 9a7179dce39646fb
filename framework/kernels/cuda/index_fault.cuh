// What kernels say of an index that is outside of its dim.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/kernel_util.h"

namespace zg::cuda {

inline std::string IndexFaultText(std::string_view op, const DeviceFault& fault) {
  return fmt::format("{}: an index is {}, the dim has elements 0 to {}", op, fault.got,
                     fault.limit - 1);
}

}  // namespace zg::cuda
