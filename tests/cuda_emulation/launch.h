// Kernels on the host: the blocks of a grid one after another, the threads of a block as fibers. A
// block runs until all of its threads have ended or wait for each other. An error of a kernel ends
// the launch, and cudaGetErrorString() gives its text.
#pragma once

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace zg::emulation {

constexpr int kMaxThreads = 1024;
constexpr int kLanes = 32;
constexpr size_t kMaxSharedBytes = size_t{227} << 10;  // per block

// The order in which the threads take turns. Results must not depend on it.
enum class ThreadOrder { kForward, kBackward, kShuffled };
void NextThreadOrder();
ThreadOrder CurrentThreadOrder();

struct GridLaunch {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  void (*run)(const void* parameters);
  const void* parameters;
  size_t parameter_bytes;
};
cudaError_t RunGrid(const GridLaunch& launch);
cudaError_t CheckSharedBytes(const void* kernel, size_t bytes);

// The message of the last launch that failed.
const std::string& LastMessage();

// Warp operations: all lanes of a warp must call them together. The last lane to arrive runs the
// operation: `run` gets each lane's arguments, where it may leave a result.
using WarpArguments = void* const (&)[kLanes];
void JoinWarp(const char* operation, void (*run)(WarpArguments), void* arguments);

// The running thread of the block: its number, -1 outside of kernels, and its stack.
struct Running {
  int number = -1;
  uintptr_t stack = 0;
};
extern __thread Running running;  // only set in the host thread that runs it

// Ends the launch. Only inside a kernel.
[[noreturn]] void FailWith(cudaError_t error, const std::string& what);
// Accesses after this call do not count as accesses of the kernel.
void LeaveKernel();
template <typename... Arguments>
[[noreturn]] void Fail(cudaError_t error, fmt::format_string<Arguments...> format,
                       Arguments&&... arguments) {
  LeaveKernel();
  FailWith(error, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace zg::emulation
