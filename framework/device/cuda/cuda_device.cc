#include "framework/device/cuda_device.h"

#include <cuda_runtime_api.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "framework/base/without_signals.h"
#include "framework/device/cuda/cuda_status.h"
#include "framework/device/cuda_support.h"

namespace zg {
namespace {

// `code` comes from a wait for the queue of `device`, or from polling it.
Status QueueStatus(const std::string& device, cudaError_t code) {
  if (code == cudaSuccess) return Status::Ok();
  return CudaWorkFailed(device,
                        fmt::format("{} ({})", cudaGetErrorString(code), cudaGetErrorName(code)));
}

cudaStream_t StreamOf(const Device& device) { return static_cast<cudaStream_t>(device.stream()); }

class CudaEvent : public DeviceEvent {
 public:
  CudaEvent(const Device* device, cudaEvent_t event) : device_(*device), event_(event) {}
  ~CudaEvent() override { cudaEventDestroy(event_); }

  Status Record() override {
    return CudaStatus(cudaEventRecord(event_, StreamOf(device_)), "event record");
  }
  StatusOr<bool> IsDone() override {
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaErrorNotReady) {
      cudaGetLastError();  // not an error, but CUDA keeps it for the next caller
      return false;
    }
    ZG_RETURN_IF_ERROR(QueueStatus(device_.name(), code));
    return true;
  }
  Status Wait() override { return QueueStatus(device_.name(), cudaEventSynchronize(event_)); }
  Status QueueWait() override {
    return CudaStatus(cudaStreamWaitEvent(StreamOf(device_), event_, 0), "wait of a queue");
  }

 private:
  const Device& device_;
  const cudaEvent_t event_;
};

class CudaGraph : public RecordedWork {
 public:
  CudaGraph(cudaGraphExec_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {}
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }

  Status Replay() override { return CudaStatus(cudaGraphLaunch(graph_, stream_), "graph launch"); }

 private:
  const cudaGraphExec_t graph_;
  const cudaStream_t stream_;
};

class CudaDevice : public Device {
 public:
  CudaDevice(int index, std::string name) : index_(index), name_(std::move(name)) {}
  ~CudaDevice() override {
    for (const cudaStream_t stream : {work_, transfers_}) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
  }

  Status Open() {
    ZG_RETURN_IF_ERROR(Select());
    ZG_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&work_, cudaStreamNonBlocking));
    used_ = work_;
    ZG_ASSIGN_OR_RETURN(const MemoryInfo memory_info, ReadMemoryInfo());
    free_bytes_at_open_ = memory_info.free_bytes;
    return Status::Ok();
  }

  std::string name() const override { return name_; }
  void* stream() const override { return used_; }

  // Most programs need one queue.
  Status UseQueue(DeviceQueue queue) override {
    if (queue == DeviceQueue::kTransfers && transfers_ == nullptr) {
      ZG_RETURN_IF_ERROR(Select());
      ZG_ASSIGN_OR_RETURN(transfers_end_, MakeEvent());
      ZG_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&transfers_, cudaStreamNonBlocking));
    }
    used_ = queue == DeviceQueue::kTransfers ? transfers_ : work_;
    return Status::Ok();
  }

  Status JoinQueues() override {
    if (transfers_ == nullptr) return Status::Ok();
    used_ = transfers_;
    const Status end = transfers_end_->Record();
    used_ = work_;
    ZG_RETURN_IF_ERROR(end);
    return transfers_end_->QueueWait();
  }

  StatusOr<DeviceBytes> Allocate(int64_t bytes) override {
    ZG_RETURN_IF_ERROR(Select());
    ZG_ASSIGN_OR_RETURN(const MemoryInfo memory_info, ReadMemoryInfo());
    void* data = nullptr;
    const cudaError_t code = cudaMalloc(&data, bytes == 0 ? 1 : bytes);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // reported here, so no later caller must see it
      return CudaOutOfMemory(name_, bytes, memory_info.free_bytes, memory_info.total_bytes);
    }
    ZG_RETURN_IF_ERROR(CudaStatus(code, "cudaMalloc"));
    allocated_bytes_ += bytes;
    DeviceBytes memory(static_cast<std::byte*>(data), [this, bytes](std::byte* data) {
      cudaFree(data);
      allocated_bytes_ -= bytes;
    });
    ZG_RETURN_IF_ERROR(Zero(data, bytes));
    return memory;
  }

  StatusOr<DeviceBytes> AllocatePinned(int64_t bytes) override {
    ZG_RETURN_IF_ERROR(Select());
    void* data = nullptr;
    ZG_RETURN_IF_ERROR(PinStatus(bytes, cudaMallocHost(&data, bytes == 0 ? 1 : bytes)));
    return DeviceBytes(static_cast<std::byte*>(data), [](std::byte* data) { cudaFreeHost(data); });
  }

  StatusOr<DeviceBytes> Pin(std::byte* host, int64_t bytes) override {
    ZG_RETURN_IF_ERROR(Select());
    ZG_RETURN_IF_ERROR(PinStatus(bytes, cudaHostRegister(host, bytes, cudaHostRegisterDefault)));
    return DeviceBytes(host, [](std::byte* host) { cudaHostUnregister(host); });
  }

  // Counts all programs on this GPU, so memory that others take meanwhile counts too.
  StatusOr<DeviceMemoryUse> MemoryUse() override {
    ZG_RETURN_IF_ERROR(Select());
    ZG_ASSIGN_OR_RETURN(const MemoryInfo now, ReadMemoryInfo());
    return DeviceMemoryUse{now.free_bytes, free_bytes_at_open_ - now.free_bytes - allocated_bytes_};
  }

  Status CopyIn(void* to_device, const void* from_host, int64_t bytes) override {
    return CopyAsync(to_device, from_host, bytes, cudaMemcpyHostToDevice);
  }
  Status CopyOut(void* to_host, const void* from_device, int64_t bytes) override {
    return CopyAsync(to_host, from_device, bytes, cudaMemcpyDeviceToHost);
  }
  Status Copy(void* to, const void* from, int64_t bytes) override {
    return CopyAsync(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  Status Copy(const CopiedRows& rows) override {
    if (rows.bytes == 0 || rows.count == 0) return Status::Ok();
    // The limit of 2 GiB for a stride applies even if there is no second row.
    if (rows.count == 1) return Copy(rows.to, rows.from, rows.bytes);
    ZG_RETURN_IF_CUDA_ERROR(cudaMemcpy2DAsync(rows.to, rows.to_stride, rows.from, rows.from_stride,
                                              rows.bytes, rows.count, cudaMemcpyDeviceToDevice,
                                              used_));
    return Status::Ok();
  }
  Status Zero(void* memory, int64_t bytes) override {
    if (bytes == 0) return Status::Ok();
    ZG_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(memory, 0, bytes, used_));
    return Status::Ok();
  }

  Status Synchronize() override {
    for (const cudaStream_t stream : {work_, transfers_}) {
      if (stream == nullptr) continue;
      ZG_RETURN_IF_ERROR(QueueStatus(name_, cudaStreamSynchronize(stream)));
    }
    return Status::Ok();
  }

  StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent() override {
    ZG_RETURN_IF_ERROR(Select());
    cudaEvent_t event = nullptr;
    ZG_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return std::unique_ptr<DeviceEvent>(new CudaEvent(this, event));
  }

  // Relaxed: NCCL launches from a thread of its own.
  Status BeginRecording() override {
    ZG_RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(work_, cudaStreamCaptureModeRelaxed));
    return Status::Ok();
  }
  StatusOr<std::unique_ptr<RecordedWork>> EndRecording() override {
    cudaGraph_t graph = nullptr;
    ZG_RETURN_IF_CUDA_ERROR(cudaStreamEndCapture(work_, &graph));
    cudaGraphExec_t executable = nullptr;
    const cudaError_t code = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    ZG_RETURN_IF_ERROR(CudaStatus(code, "cudaGraphInstantiate"));
    return std::unique_ptr<RecordedWork>(new CudaGraph(executable, work_));
  }

 private:
  struct MemoryInfo {
    int64_t free_bytes = 0;
    int64_t total_bytes = 0;
  };
  static StatusOr<MemoryInfo> ReadMemoryInfo() {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ZG_RETURN_IF_CUDA_ERROR(cudaMemGetInfo(&free_bytes, &total_bytes));
    return MemoryInfo{static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes)};
  }

  // "Out of memory" alone would be read as the GPU's.
  Status PinStatus(int64_t bytes, cudaError_t code) const {
    if (code == cudaSuccess) return Status::Ok();
    return FailedPrecondition("{}: {} bytes of the host's memory cannot be pinned: {} ({})", name_,
                              bytes, cudaGetErrorString(code), cudaGetErrorName(code));
  }

  // The device is a setting of the calling thread, and ranks may be threads.
  Status Select() const { return CudaStatus(cudaSetDevice(index_), "cudaSetDevice"); }

  Status CopyAsync(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return Status::Ok();
    ZG_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to, from, bytes, kind, used_));
    return Status::Ok();
  }

  const int index_;
  const std::string name_;
  cudaStream_t work_ = nullptr;
  cudaStream_t transfers_ = nullptr;  // null until it is used
  cudaStream_t used_ = nullptr;       // one of the two
  std::unique_ptr<DeviceEvent> transfers_end_;
  int64_t free_bytes_at_open_ = 0;
  int64_t allocated_bytes_ = 0;
};

}  // namespace

StatusOr<int> NumCudaDevices() {
  const WithoutSignals for_threads_of_the_driver;
  CudaProbe probe;
  cudaRuntimeGetVersion(&probe.runtime_version);
  cudaDriverGetVersion(&probe.driver_version);
  const cudaError_t code = cudaGetDeviceCount(&probe.num_devices);
  if (code != cudaSuccess) {
    probe.num_devices = 0;
    probe.error = cudaGetErrorString(code);
  }
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) probe.visible_devices = visible;
  ZG_RETURN_IF_ERROR(CheckCudaProbe(probe));
  return probe.num_devices;
}

StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int index) {
  const WithoutSignals for_threads_of_the_driver;
  ZG_ASSIGN_OR_RETURN(const int num_devices, NumCudaDevices());
  ZG_RETURN_IF_ERROR(CheckCudaIndex(index, num_devices));
  cudaDeviceProp properties;
  ZG_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, index));
  std::string name = fmt::format("cuda:{} ({})", index, properties.name);
  ZG_RETURN_IF_ERROR(CheckCudaCapability(name, properties.major, properties.minor));
  const std::string notice = FirstStartNotice(name, properties.major, properties.minor);
  if (!notice.empty()) spdlog::info("{}", notice);
  auto device = std::make_unique<CudaDevice>(index, std::move(name));
  ZG_RETURN_IF_ERROR(device->Open());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace zg
