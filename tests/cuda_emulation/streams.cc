#include "tests/cuda_emulation/streams.h"

#include <cuda.h>

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "tests/cuda_emulation/launch.h"
#include "tests/cuda_emulation/memory.h"

namespace zg::emulation {
namespace {

// Recorded work: works in the order in which they were queued, which the synchronisation between
// the streams allows.
struct Recording {
  std::vector<Work> works;
  struct Counts {
    size_t queued = 0;
    size_t joined = 0;  // works before the one that the first stream waits for
  };
  cudaStream_t first = nullptr;
  std::map<cudaStream_t, Counts> others;  // which wait for it
  bool has_ended = false;
};

}  // namespace
}  // namespace zg::emulation

struct CUstream_st {
  std::thread::id owner;
  std::deque<zg::emulation::Work> works;
  bool is_destroyed = false;
  cudaError_t error = cudaSuccess;  // of its work; after an error it does nothing more
  std::shared_ptr<zg::emulation::Recording> recording;

  bool is_idle() const { return works.empty(); }
};
struct CUevent_st {
  int64_t num_recorded = 0;
  std::shared_ptr<double> ms = std::make_shared<double>(0);  // when the last record was done
  std::shared_ptr<int64_t> num_done = std::make_shared<int64_t>(0);  // shared with queued records
  cudaStream_t stream = nullptr;                                     // of the last record
  std::shared_ptr<zg::emulation::Recording> recording;               // which that is part of
  // Number of earlier works of its stream in the recording.
  size_t num_before = 0;
};
struct CUgraph_st {
  std::vector<zg::emulation::Work> works;
};
struct CUgraphExec_st {
  std::vector<zg::emulation::Work> works;
};

namespace zg::emulation {
namespace {

using Lock = std::unique_lock<std::mutex>;

// Never destroyed, because its thread never ends.
struct DeviceThread {
  std::mutex mutex;
  std::condition_variable has_changed;
  std::list<CUstream_st*> streams;
  std::minstd_rand shuffle{1};
  bool is_held = false;
  bool is_started = false;
  double ms = 0;  // since the device is there

  // The stream whose turn it is; null if none can go on.
  CUstream_st* Next() {
    std::vector<CUstream_st*> ready;
    for (CUstream_st* const stream : streams) {
      if (stream->works.empty()) continue;
      const Work& first = stream->works.front();
      if (!first.is_ready || first.is_ready()) ready.push_back(stream);
    }
    if (is_held || ready.empty()) return nullptr;
    switch (CurrentThreadOrder()) {
      case ThreadOrder::kForward:
        return ready.front();
      case ThreadOrder::kBackward:
        return ready.back();
      case ThreadOrder::kShuffled:
        return ready[shuffle() % ready.size()];
    }
    return nullptr;
  }

  void Run() {
    Lock lock(mutex);
    for (;;) {
      CUstream_st* const stream = Next();
      if (stream == nullptr) {
        has_changed.wait_for(lock, std::chrono::milliseconds(1));
        continue;
      }
      const Work work = std::move(stream->works.front());
      stream->works.pop_front();
      stream->error = work.run();
      if (stream->error != cudaSuccess) stream->works.clear();
      if (stream->is_destroyed && stream->works.empty()) {
        streams.remove(stream);
        delete stream;
      }
      has_changed.notify_all();
      lock.unlock();  // for waiting threads
      lock.lock();
    }
  }
};

DeviceThread& Device() {
  static auto& device = *new DeviceThread;
  return device;
}

}  // namespace

std::mutex& DeviceMutex() { return Device().mutex; }

cudaError_t Queue(cudaStream_t stream, Work work) {
  const Lock lock(DeviceMutex());
  if (stream == nullptr) {
    ZG_CHECK(!work.is_ready || work.is_ready(), "the null stream would wait for ever");
    return work.run();
  }
  if (stream->error != cudaSuccess) return stream->error;
  if (stream->recording != nullptr) {
    stream->recording->works.push_back(std::move(work));
    if (stream != stream->recording->first) ++stream->recording->others[stream].queued;
    return cudaSuccess;
  }
  stream->works.push_back(std::move(work));
  Device().has_changed.notify_all();
  return cudaSuccess;
}

void Hold() {
  const Lock lock(DeviceMutex());
  Device().is_held = true;
}

void Go() {
  const Lock lock(DeviceMutex());
  Device().is_held = false;
  Device().has_changed.notify_all();
}

void PassTime(double ms) { Device().ms += ms; }

void WaitForOwnStreams() {
  Lock lock(DeviceMutex());
  Device().has_changed.wait(lock, [] {
    for (const CUstream_st* const stream : Device().streams) {
      if (stream->owner == std::this_thread::get_id() && !stream->is_idle()) return false;
    }
    return true;
  });
}

cudaError_t LaunchOn(const cudaLaunchConfig_t& config, const void* kernel,
                     void (*run)(const void* call), const void* call, size_t call_bytes) {
  const cudaError_t error = CheckSharedBytes(kernel, config.dynamicSmemBytes);
  if (error != cudaSuccess) return error;
  const std::shared_ptr<std::byte[]> copy(new std::byte[call_bytes]);
  std::memcpy(copy.get(), call, call_bytes);
  const GridLaunch launch = {config.gridDim, config.blockDim, config.dynamicSmemBytes, run,
                             copy.get(),     call_bytes};
  return Queue(config.stream, {[launch, copy] { return RunGrid(launch); }});
}

}  // namespace zg::emulation

using zg::emulation::Device;
using zg::emulation::IsAllocated;
using zg::emulation::Lock;
using zg::emulation::Queue;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
  const Lock lock(Device().mutex);
  *stream = new CUstream_st;
  (*stream)->owner = std::this_thread::get_id();
  Device().streams.push_back(*stream);
  if (!std::exchange(Device().is_started, true)) std::thread([] { Device().Run(); }).detach();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return cudaSuccess;
  const Lock lock(Device().mutex);
  if (stream->is_idle()) {
    Device().streams.remove(stream);
    delete stream;
  } else {
    stream->is_destroyed = true;
  }
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return cudaSuccess;
  Lock lock(Device().mutex);
  if (stream->recording != nullptr) return cudaErrorInvalidValue;
  Device().has_changed.wait(lock, [&] { return stream->is_idle(); });
  return stream->error;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  int64_t number = 0;
  {
    const Lock lock(Device().mutex);
    event->stream = stream;
    event->recording = stream == nullptr ? nullptr : stream->recording;
    if (event->recording != nullptr) {
      const bool is_first = stream == event->recording->first;
      event->num_before = is_first ? 0 : event->recording->others[stream].queued;
      return cudaSuccess;
    }
    number = ++event->num_recorded;
  }
  return Queue(stream, {[num_done = event->num_done, ms = event->ms, number] {
                 *num_done = number;
                 *ms = Device().ms;
                 return cudaSuccess;
               }});
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (stream == nullptr || flags != 0) return cudaErrorInvalidValue;
  {
    const Lock lock(Device().mutex);
    if (event->recording != nullptr) {
      if (event->recording->has_ended) return cudaErrorStreamCaptureIsolation;
      if (stream->recording == nullptr) {
        stream->recording = event->recording;
        stream->recording->others[stream] = {};
      }
      if (stream->recording != event->recording) return cudaErrorStreamCaptureIsolation;
      const bool joins = stream == event->recording->first && event->stream != stream;
      if (joins) event->recording->others[event->stream].joined = event->num_before;
      return cudaSuccess;
    }
    if (stream->recording != nullptr) return cudaErrorStreamCaptureIsolation;
  }
  const auto is_passed = [num_done = event->num_done, number = event->num_recorded] {
    return *num_done >= number;
  };
  return Queue(stream, {[] { return cudaSuccess; }, is_passed});
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(Device().mutex);
  if (event->recording != nullptr) return cudaErrorInvalidValue;
  if (event->stream != nullptr && event->stream->error != cudaSuccess) return event->stream->error;
  return *event->num_done == event->num_recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  const Lock lock(Device().mutex);
  for (const cudaEvent_t event : {begin, end}) {
    if (event->num_recorded == 0) return cudaErrorInvalidValue;
    if (*event->num_done != event->num_recorded) return cudaErrorNotReady;
  }
  *ms = static_cast<float>(*end->ms - *begin->ms);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Lock lock(Device().mutex);
  const auto has_failed = [&] {
    return event->stream != nullptr && event->stream->error != cudaSuccess;
  };
  Device().has_changed.wait(
      lock, [&] { return *event->num_done == event->num_recorded || has_failed(); });
  return has_failed() ? event->stream->error : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(Device().mutex);
  if (stream == nullptr || stream->recording != nullptr) return cudaErrorInvalidValue;
  stream->recording = std::make_shared<zg::emulation::Recording>();
  stream->recording->first = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(Device().mutex);
  const std::shared_ptr<zg::emulation::Recording> recording = std::move(stream->recording);
  if (recording == nullptr || recording->first != stream) return cudaErrorInvalidValue;
  recording->has_ended = true;
  bool all_joined = true;
  for (const auto& [other, counts] : recording->others) {
    other->recording = nullptr;
    all_joined = all_joined && counts.joined == counts.queued;
  }
  if (!all_joined) return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st{std::move(recording->works)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Lock lock(Device().mutex);
  const bool is_capturing = stream != nullptr && stream->recording != nullptr;
  *status = is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned) {
  *executable = new CUgraphExec_st{graph->works};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const zg::emulation::Work& work : executable->works) {
    if (const cudaError_t error = Queue(stream, work); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

namespace {

// Null if the address is not a word of device memory.
uint32_t* WordAt(CUdeviceptr address) {
  auto* const word = reinterpret_cast<uint32_t*>(address);
  return address % sizeof(uint32_t) == 0 && IsAllocated(word, sizeof(uint32_t)) ? word : nullptr;
}

}  // namespace

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations,
                            unsigned flags) {
  constexpr unsigned kMostOperations = 256;
  if (stream == nullptr || count > kMostOperations || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams operation = operations[i];
    zg::emulation::Work work;
    if (operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
      work.run = [write = operation.writeValue] {
        uint32_t* const word = WordAt(write.address);
        if (word == nullptr) return cudaErrorIllegalAddress;
        *word = write.value;
        return cudaSuccess;
      };
    } else if (operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 &&
               operation.waitValue.flags == CU_STREAM_WAIT_VALUE_EQ) {
      work.is_ready = [wait = operation.waitValue] {
        const uint32_t* const word = WordAt(wait.address);
        return word == nullptr || *word == wait.value;
      };
      work.run = [wait = operation.waitValue] {
        return WordAt(wait.address) == nullptr ? cudaErrorIllegalAddress : cudaSuccess;
      };
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (Queue(stream, std::move(work)) != cudaSuccess) return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_INVALID_VALUE     ? "CUDA_ERROR_INVALID_VALUE"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                : "CUDA_SUCCESS";
  return CUDA_SUCCESS;
}
