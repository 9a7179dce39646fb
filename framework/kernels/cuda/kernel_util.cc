#include "framework/kernels/cuda/kernel_util.h"

#include <string>
#include <vector>

#include "framework/device/cuda/cuda_status.h"

namespace zg::cuda {
namespace {

Status CheckTypes(const std::string& op, const std::vector<TensorType>& types, const char* role) {
  for (size_t i = 0; i < types.size(); ++i) {
    const DType dtype = types[i].dtype;
    if (IsFloat(dtype) || dtype == DType::kI64 || dtype == DType::kBool) continue;
    return InvalidArgument("{}: {} {} is {}, the CUDA kernel takes f32, bf16, f16, i64 and bool",
                           op, role, i, types[i].ToString());
  }
  return Status::Ok();
}

}  // namespace

MatrixShape AsMatrix(const Shape& shape) {
  if (shape.num_dims() == 0) return {1, 1};
  MatrixShape matrix{1, shape.dim(-1)};
  for (int i = 0; i + 1 < shape.num_dims(); ++i) matrix.rows *= shape.dim(i);
  return matrix;
}

Status CudaStatus(cudaError_t error, const char* what) {
  return zg::CudaStatus(error, what).WithContext("CUDA");
}

cudaLaunchConfig_t LaunchConfig(const LaunchShape& shape, void* stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = static_cast<cudaStream_t>(stream);
  return config;
}

Status LaunchStatus(cudaError_t error) {
  return CudaStatus(error, "a kernel could not be launched");
}

Status CheckCudaTypes(const KernelSpec& spec) {
  const std::string& op = spec.call.op->name;
  ZG_RETURN_IF_ERROR(CheckTypes(op, spec.call.inputs, "input"));
  return CheckTypes(op, spec.outputs, "output");
}

}  // namespace zg::cuda
