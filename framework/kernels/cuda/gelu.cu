#include "framework/kernels/cuda/elementwise_body.cuh"
#include "framework/kernels/cuda/gelu.h"

namespace zg::cuda {

Status Gelu(const TensorType& type, const void* h, void* y, void* stream) {
  return RunElementwise<ElementwiseCode::kGelu>(type, {h, h, y}, stream);
}

Status GeluGrad(const TensorType& type, const void* dy, const void* h, void* dh, void* stream) {
  return RunElementwise<ElementwiseCode::kGeluGrad>(type, {dy, h, dh}, stream);
}

}  // namespace zg::cuda
