// The memory of the emulated device, with the checks of a device sanitizer for each access of a
// kernel: outside of an allocation, misaligned, to shared memory that nobody has written, to a copy
// that is still in flight, or to bytes that another thread accesses without a barrier in between.
//
// The kernels are compiled so that they call Check() at each load and store (-fsanitize=thread, see
// memory.cc).
#pragma once

#include <cstddef>

namespace zg::emulation {

// Null if there is no room. At multiples of 256 bytes, of exactly that size.
void* Allocate(size_t bytes);
bool Free(void* memory);
void FreeAll();
size_t FreeBytes();
// Whether all of these bytes are in one allocation.
bool IsAllocated(const void* address, size_t bytes);

enum class Access { kRead, kWrite, kAtomic };
const char* NameOf(Access access);  // "a read"

// Ends the launch if the running thread must not make this access; does nothing outside of kernels.
void Check(const void* address, size_t bytes, Access access);
void CheckAlignment(const void* address, size_t alignment);

// Asynchronous copies: 16 bytes of shared memory that nobody may access until they have arrived.
void BeginCopy(const void* target);
void EndCopy(const void* target);

// Called by launches. A block has `bytes` of dynamic shared memory, full of NaNs at its start.
char* DynamicSharedMemory();
void BeginGrid(size_t shared_bytes, const void* parameters, size_t parameter_bytes);
void BeginBlock(size_t shared_bytes);
// Orders everything before it before everything after it, for all threads of the block.
void BeginInterval();

}  // namespace zg::emulation
