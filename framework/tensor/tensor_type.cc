#include "framework/tensor/tensor_type.h"

#include <fmt/core.h>

namespace zg {

std::string TensorType::ToString() const {
  return std::string(DTypeName(dtype)) + shape.ToString();
}

}  // namespace zg
