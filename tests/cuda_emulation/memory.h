// The memory of the emulated device, and what a sanitizer of devices would say of each access of a
// kernel: outside of an allocation, misaligned, of shared memory that nobody has written, of a copy
// that is still in flight, or of what another thread accesses with no barrier in between.
//
// The kernels are compiled so that they call Check() at each load and store (-fsanitize=thread, see
// memory.cc).
#pragma once

#include <cstddef>

namespace zg::emulation {

// Null where there is no room. At multiples of 256 bytes, of exactly that size.
void* Allocate(size_t bytes);
bool Free(void* memory);
void FreeAll();
size_t FreeBytes();
// Whether these bytes are all of one allocation.
bool IsAllocated(const void* address, size_t bytes);

enum class Access { kRead, kWrite, kAtomic };
const char* NameOf(Access access);  // "a read"

// Ends the launch if the running thread must not do that; nothing outside of kernels.
void Check(const void* address, size_t bytes, Access access);
void CheckAlignment(const void* address, size_t alignment);

// Asynchronous copies: of 16 bytes of shared memory that nobody may touch until they have landed.
void BeginCopy(const void* target);
void EndCopy(const void* target);

// Called by launches. A block has `bytes` of dynamic shared memory, full of NaNs at its start.
char* DynamicSharedMemory();
void BeginGrid(size_t shared_bytes, const void* parameters, size_t parameter_bytes);
void BeginBlock(size_t shared_bytes);
// Orders what was before it before what comes after it, for all threads of the block.
void BeginInterval();

}  // namespace zg::emulation
