// The kernels of gelu and gelu_grad as functions, to run after a product whose epilogue does not
// compute them. The output may be one of the inputs.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/op_def.h"

namespace zg::cuda {

// y = gelu(h), all of `type`.
Status Gelu(const TensorType& type, const void* h, void* y, void* stream);

// dh = gelu'(h) dy, all of `type`.
Status GeluGrad(const TensorType& type, const void* dy, const void* h, void* dh, void* stream);

}  // namespace zg::cuda
