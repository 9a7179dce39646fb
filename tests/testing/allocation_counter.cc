#include "tests/testing/allocation_counter.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

// The sanitizers have an allocator of their own; with them only operator new is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define ZG_COUNT_MALLOC 0
#else
#define ZG_COUNT_MALLOC 1
#endif

namespace {

thread_local int64_t num_allocations = 0;

void* Counted(void* memory) {
  ++num_allocations;
  return memory;
}

}  // namespace

#if ZG_COUNT_MALLOC
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) noexcept { return Counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) noexcept { return Counted(__libc_calloc(count, size)); }
void* realloc(void* memory, size_t size) noexcept { return Counted(__libc_realloc(memory, size)); }
void* memalign(size_t alignment, size_t size) noexcept {
  return Counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return Counted(__libc_memalign(alignment, size));
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  *memory = Counted(__libc_memalign(alignment, size));
  return *memory == nullptr ? ENOMEM : 0;
}
}
#else
void* operator new(size_t size) { return Counted(std::malloc(size)); }
void* operator new[](size_t size) { return Counted(std::malloc(size)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return Counted(std::malloc(size));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return Counted(std::malloc(size));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
#endif

namespace zg::testing {

AllocationCounter::AllocationCounter() : start_(num_allocations) {}
int64_t AllocationCounter::count() const { return num_allocations - start_; }

}  // namespace zg::testing
