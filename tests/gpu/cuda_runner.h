// Runs one CUDA kernel on tensors of the host: copies them to the device, each followed by a guard
// that detects writes beyond the end, and copies the results back.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/check.h"
#include "framework/kernels/cuda/cuda_kernels.h"
#include "framework/kernels/kernel.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {

inline void CheckCuda(cudaError_t error) {
  ZG_CHECK(error == cudaSuccess, "CUDA: {}", cudaGetErrorString(error));
}

// Memory of the device, `offset_bytes` after a boundary of 256, full of NaNs. An emulated device
// detects accesses outside of an allocation itself; a guard would hide them.
class DeviceBuffer {
 public:
  DeviceBuffer(int64_t bytes, int64_t offset_bytes) : bytes_(bytes), offset_(offset_bytes) {
    CheckCuda(cudaMalloc(&memory_, offset_ + bytes_ + kGuardBytes));
    CheckCuda(cudaMemset(memory_, 0xff, offset_ + bytes_));
    CheckCuda(cudaMemset(data() + bytes_, kGuard, kGuardBytes));
  }
  ~DeviceBuffer() { cudaFree(memory_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  char* data() const { return memory_ + offset_; }
  void Upload(const void* source) {
    CheckCuda(cudaMemcpy(data(), source, bytes_, cudaMemcpyHostToDevice));
  }
  void Download(void* target) const {
    CheckCuda(cudaMemcpy(target, data(), bytes_, cudaMemcpyDeviceToHost));
  }
  bool IntactBehindTheEnd() const {
    std::vector<char> guard(kGuardBytes);
    CheckCuda(cudaMemcpy(guard.data(), data() + bytes_, kGuardBytes, cudaMemcpyDeviceToHost));
    return guard == std::vector<char>(kGuardBytes, kGuard);
  }

 private:
#ifdef ZG_EMULATED_CUDA
  static constexpr int64_t kGuardBytes = 0;
#else
  static constexpr int64_t kGuardBytes = 256;
#endif
  static constexpr char kGuard = 0x5a;
  const int64_t bytes_;
  const int64_t offset_;
  char* memory_ = nullptr;
};

struct CudaRun {
  StepContext step;
  bool tf32 = false;
  int64_t misaligned_elements = 0;  // for every operand
  std::map<int, int> in_place;      // output -> the input whose memory it uses
};

struct CudaResult {
  Status status;
  std::vector<HeapTensor> outputs;
  std::string fault;  // empty if there is none
};

// Outputs that must lie inside an input (AliasRule::kOutputInsideInput) do so.
inline CudaResult RunOnCuda(const ir::OpCall& call, const std::vector<HeapTensor>& inputs,
                            CudaRun run) {
  CudaResult result;
  KernelSpec spec{call, *call.op->infer_shape(call)};
  StatusOr<std::unique_ptr<Kernel>> kernel = CudaKernels(run.tf32).Make(spec);
  if (!kernel.ok()) {
    result.status = kernel.status();
    return result;
  }
  if (call.op->aliases != nullptr) {
    for (const ir::AliasRule& rule : call.op->aliases(call)) {
      if (rule.kind == ir::AliasRule::Kind::kOutputInsideInput)
        run.in_place[rule.output] = rule.input;
    }
  }
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  const auto allocate = [&](const TensorType& type) {
    const int64_t offset = run.misaligned_elements * SizeOf(type.dtype);
    buffers.push_back(std::make_unique<DeviceBuffer>(type.bytes(), offset));
    return buffers.back().get();
  };
  std::vector<DeviceBuffer*> device_inputs;
  std::vector<DeviceBuffer*> device_outputs;
  std::vector<const void*> input_addresses;
  std::vector<void*> output_addresses;
  for (const HeapTensor& input : inputs) {
    device_inputs.push_back(allocate(input.type()));
    device_inputs.back()->Upload(input.data());
    input_addresses.push_back(device_inputs.back()->data());
  }
  std::vector<bool> overwritten(inputs.size());
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const auto shared = run.in_place.find(static_cast<int>(i));
    const bool is_shared = shared != run.in_place.end();
    if (is_shared) overwritten[shared->second] = true;
    device_outputs.push_back(is_shared ? device_inputs[shared->second] : allocate(spec.outputs[i]));
    output_addresses.push_back(device_outputs.back()->data());
  }
  constexpr int64_t kArenaAlignment = 64;  // of workspaces, which are in an arena
  DeviceBuffer workspace((*kernel)->workspace_bytes(), kArenaAlignment);
  DeviceBuffer step(sizeof(StepContext), 0);
  DeviceBuffer fault(sizeof(DeviceFault), 0);
  DeviceFault fault_on_host;
  step.Upload(&run.step);
  fault.Upload(&fault_on_host);
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreate(&stream));

  // The host passes no step: kernels read it on the device.
  KernelArguments arguments = {input_addresses.data(), output_addresses.data(), workspace.data(),
                               nullptr};
  arguments.stream = stream;
  arguments.device_step = reinterpret_cast<const StepContext*>(step.data());
  arguments.fault = reinterpret_cast<DeviceFault*>(fault.data());
  arguments.node = 7;
  CheckCuda(cudaDeviceSynchronize());
  result.status = (*kernel)->Run(arguments);
  CheckCuda(cudaStreamSynchronize(stream));
  CheckCuda(cudaStreamDestroy(stream));

  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    result.outputs.emplace_back(spec.outputs[i]);
    device_outputs[i]->Download(result.outputs.back().data());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (overwritten[i]) continue;
    const HeapTensor after(inputs[i].type());
    device_inputs[i]->Download(after.data());
    EXPECT_TRUE(SameBits(after, inputs[i])) << "input " << i << " was written to";
  }
  for (const auto& buffer : buffers) EXPECT_TRUE(buffer->IntactBehindTheEnd());
  EXPECT_TRUE(workspace.IntactBehindTheEnd()) << "the workspace is too small";
  fault.Download(&fault_on_host);
  if (fault_on_host.happened != 0) {
    EXPECT_EQ(fault_on_host.node, 7);
    result.fault = (*kernel)->FaultText(fault_on_host);
  }
  return result;
}

}  // namespace zg::testing
