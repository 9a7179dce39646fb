// Streams of the emulated device: the device's own thread runs the work queued on a stream, one
// item at a time, in the order of the stream. The order of threads (launch.h) determines which
// stream goes on: the first that can, or the last, for as long as it can; or any. A stream that
// waits for a value in memory does not block the others. Work on the null stream runs at once.
//
// A thread of the host stands for a process: it may not free memory that another has mapped, and
// freeing waits for everything that it has queued itself.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <mutex>

namespace zg::emulation {

// Held by every user of the device.
std::mutex& DeviceMutex();

struct Work {
  std::function<cudaError_t()> run;
  std::function<bool()> is_ready = {};  // empty: always
};

// Queues the work, records it, or does it now. Must be called without the device's mutex.
cudaError_t Queue(cudaStream_t stream, Work work);

// Sets the time of the work that is running now, as events report it. Only products take time, and
// it is not real.
void PassTime(double ms);

// Waits until the streams that the calling thread has created are empty.
void WaitForOwnStreams();

// Whether another process has an allocation open; whether host memory is pinned. The first must be
// called with the mutex, the second without.
bool IsMappedElsewhere(void* memory);
bool IsPinned(const void* memory, size_t bytes);

// The device's thread does nothing until Go, so that hosts can run as far ahead as they like.
void Hold();
void Go();

// Acts like the end of all processes: no memory stays allocated, pinned or mapped. Nothing may be
// queued.
void EndProcesses();

// From 1 on, device `index` has a bus of its own. Each device maps the memory of all others, or
// none does.
void SetDevices(int count, bool have_peer_access = true);

// Makes the next cudaIpcOpenMemHandle fail; later ones succeed again.
void FailNextIpcOpen();

}  // namespace zg::emulation
