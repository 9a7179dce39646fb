// Streams of the emulated device: what is queued on one is done by the device's own thread, one thing
// at a time, in the order of its stream. Which stream goes on is as the order of threads says
// (launch.h): the first that can, or the last, for as long as it can; or any. A stream that waits for
// a value in memory holds up no other. What is queued on none (the null stream) is done at once.
//
// A thread of the host stands for a process: it may not free memory that another has mapped, and
// freeing waits for all that it has queued itself.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <mutex>

namespace zg::emulation {

// Whoever touches the device holds it.
std::mutex& DeviceMutex();

struct Work {
  std::function<cudaError_t()> run;
  std::function<bool()> is_ready = {};  // empty: always
};

// Queues, records, or does it now. With the device's mutex not held.
cudaError_t Queue(cudaStream_t stream, Work work);

// What the work that runs now takes, as events tell. Only products take time, and it is no real one.
void PassTime(double ms);

// Until the streams that the calling thread has made are empty.
void WaitForOwnStreams();

// Whether another process has an allocation open; whether host memory is pinned. With the mutex held,
// and not held.
bool IsMappedElsewhere(void* memory);
bool IsPinned(const void* memory, size_t bytes);

// Until Go the device's thread does nothing, so that hosts can run as far ahead as they like.
void Hold();
void Go();

// What the end of all processes does: no memory is allocated, pinned or mapped any more. Nothing may
// be queued.
void EndProcesses();

// From 1 on, device `index` has a bus of its own; any of them maps the memory of any other, or none.
void SetDevices(int count, bool have_peer_access = true);

// Of the next cudaIpcOpenMemHandle; then all go well again.
void FailNextIpcOpen();

}  // namespace zg::emulation
