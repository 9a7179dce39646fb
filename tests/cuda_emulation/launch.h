// Kernels on the host: the blocks of a grid one after another, the threads of a block as fibers.
// A block runs until all of its threads have ended or wait for each other. Anything that a kernel
// must not do ends the launch with an error, whose text cudaGetErrorString() gives.
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
constexpr size_t kMaxSharedBytes = size_t{227} << 10;  // of a block

// In which order the threads take turns. Results must not depend on it.
enum class ThreadOrder { kForward, kBackward, kShuffled };
void NextThreadOrder();
ThreadOrder CurrentThreadOrder();

// Of the last launch that failed.
const std::string& LastMessage();

// Warps join operations that all of their lanes must call together. The last lane to come runs it:
// `run` gets what each lane has given, where it may leave a result.
using WarpArguments = void* const (&)[kLanes];
void JoinWarp(const char* operation, void (*run)(WarpArguments), void* arguments);

// The thread of the block that runs: its number, -1 outside of kernels, and its stack.
struct Running {
  int number = -1;
  uintptr_t stack = 0;
};
extern __thread Running running;  // only the thread of the host that runs it has one

// Ends the launch. In a kernel only.
[[noreturn]] void FailWith(cudaError_t error, const std::string& what);
// From here on nothing counts as an access of the kernel.
void LeaveKernel();
template <typename... Arguments>
[[noreturn]] void Fail(cudaError_t error, fmt::format_string<Arguments...> format,
                       Arguments&&... arguments) {
  LeaveKernel();
  FailWith(error, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace zg::emulation
