// The elements of a tensor as text.
#pragma once

#include <cstddef>
#include <string>

#include "framework/tensor/tensor_type.h"

namespace zg::eager {

// "[[ 1.0000, -2.5000],\n [ 0.0000,  3.0000]]". A tensor of more than 1000 elements shows the first
// and last three along each dim.
std::string ElementsText(const TensorType& type, const std::byte* data);

}  // namespace zg::eager
