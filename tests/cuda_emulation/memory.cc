#include "tests/cuda_emulation/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "framework/base/check.h"
#include "tests/cuda_emulation/fibers.h"
#include "tests/cuda_emulation/launch.h"

// Where the linker puts the program's constants and its variables without initial values. Among
// the latter are the __shared__ variables of kernels.
extern "C" char __executable_start[], __bss_start[], _end[];

namespace zg::emulation {
namespace {

constexpr size_t kArenaBytes = size_t{256} << 20;
constexpr size_t kPageBytes = 256;  // an allocation begins with one and shares none
constexpr size_t kGranule = 2;      // bytes whose history is one: the smallest element

// Who has touched a granule last, and in which interval between barriers.
constexpr uint16_t kSeveral = 0xffff;  // readers
constexpr uint16_t kAtomics = 0xfffe;
constexpr uint16_t kCopyInFlight = 0xfffd;
struct History {
  uint32_t write_time;
  uint32_t read_time;
  uint16_t writer;
  uint16_t reader;
};

struct Allocation {
  uintptr_t begin;
  size_t bytes;
};

// Zeros that take memory only where they are written.
template <typename T>
T* Reserve(size_t count) {
  void* const memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ZG_CHECK(memory != MAP_FAILED, "no memory for the emulated device");
  return static_cast<T*>(memory);
}

struct Arena {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(Reserve<char>(kArenaBytes));
  History* const histories = Reserve<History>(kArenaBytes / kGranule);
  Allocation* const pages = Reserve<Allocation>(kArenaBytes / kPageBytes);  // whose they are
  // The dynamic shared memory comes first.
  size_t used = kMaxSharedBytes + kPageBytes;
  int num_live = 0;

  Allocation& PageOf(uintptr_t address) { return pages[(address - begin) / kPageBytes]; }
  bool Has(uintptr_t address) const { return address - begin < kArenaBytes; }
  bool IsShared(uintptr_t address) const { return address - begin < kMaxSharedBytes; }
  void SetPages(const Allocation& allocation, const Allocation& value) {
    for (size_t at = 0; at < allocation.bytes; at += kPageBytes) {
      PageOf(allocation.begin + at) = value;
    }
  }
};
Arena arena;

const uintptr_t constants_begin = reinterpret_cast<uintptr_t>(__executable_start);
const uintptr_t variables_begin = reinterpret_cast<uintptr_t>(__bss_start);
const size_t variables_bytes = reinterpret_cast<uintptr_t>(_end) - variables_begin;
History* const variable_histories = Reserve<History>(variables_bytes / kGranule + 2);

// Intervals are numbered from the start of the program.
uint32_t now = 1;
uint32_t grid_begin = 1;
uint32_t block_begin = 1;
Allocation parameters = {};

const char* NameOf(Access access) {
  return access == Access::kRead ? "a read" : access == Access::kWrite ? "a write" : "an atomic";
}

// Whether an access by another thread at `time` is ordered before one of the running thread.
bool IsUnordered(uint32_t time, uint16_t thread, uint16_t self, bool is_shared) {
  if (time == now) return thread != self;
  return !is_shared && time >= grid_begin && time < block_begin;
}

void Follow(History* history, uint16_t self, uintptr_t address, Access access, bool is_shared) {
  if (history->writer == kCopyInFlight) {
    Fail(cudaErrorLaunchFailure, "{} of shared memory while a copy to it is in flight",
         NameOf(access));
  }
  const bool was_written = history->write_time >= block_begin;
  if (is_shared && access == Access::kRead && !was_written) {
    Fail(cudaErrorLaunchFailure, "a read of shared memory that no thread has written");
  }
  const bool are_atomics = access == Access::kAtomic && history->writer == kAtomics;
  if (!are_atomics && IsUnordered(history->write_time, history->writer, self, is_shared)) {
    Fail(cudaErrorLaunchFailure,
         "a race: {} of {} memory (address {:#x}) that another thread writes", NameOf(access),
         is_shared ? "shared" : "global", address);
  }
  if (access == Access::kRead) {
    const bool is_shared_with_others = history->read_time == now && history->reader != self;
    history->reader = is_shared_with_others ? kSeveral : self;
    history->read_time = now;
    return;
  }
  if (IsUnordered(history->read_time, history->reader, self, is_shared)) {
    Fail(cudaErrorLaunchFailure,
         "a race: {} of {} memory (address {:#x}) that another thread reads", NameOf(access),
         is_shared ? "shared" : "global", address);
  }
  history->writer = access == Access::kAtomic ? kAtomics : self;
  history->write_time = now;
}

void FollowAll(History* histories, uintptr_t base, uintptr_t address, size_t bytes, Access access,
               bool is_shared) {
  const uint16_t self = static_cast<uint16_t>(running.number + 1);
  const size_t end = (address - base + bytes - 1) / kGranule;
  for (size_t at = (address - base) / kGranule; at <= end; ++at) {
    Follow(&histories[at], self, address, access, is_shared);
  }
}

void CheckBounds(uintptr_t address, size_t bytes, Access access) {
  const Allocation& found = arena.PageOf(address);
  if (found.bytes == 0) {
    Fail(cudaErrorIllegalAddress, "{} of {} bytes in no allocation", NameOf(access), bytes);
  }
  if (address + bytes > found.begin + found.bytes) {
    Fail(cudaErrorIllegalAddress, "{} of {} bytes at byte {} of an allocation of {}",
         NameOf(access), bytes, address - found.begin, found.bytes);
  }
}

History* CopyHistories(const void* target) {
  return &arena.histories[(reinterpret_cast<uintptr_t>(target) - arena.begin) / kGranule];
}

}  // namespace

void* Allocate(size_t bytes) {
  const size_t taken = (bytes + kPageBytes) / kPageBytes * kPageBytes;  // with a part of nobody's
  if (arena.num_live == 0) arena.used = kMaxSharedBytes + kPageBytes;
  if (taken > kArenaBytes - arena.used) return nullptr;
  const Allocation allocation = {arena.begin + arena.used, bytes};
  arena.SetPages(allocation, allocation);
  arena.used += taken;
  ++arena.num_live;
  return reinterpret_cast<void*>(allocation.begin);
}

bool Free(void* memory) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  if (!arena.Has(begin)) return false;
  const Allocation allocation = arena.PageOf(begin);
  arena.SetPages(allocation, {});
  --arena.num_live;
  return true;
}

bool IsAllocated(const void* address, size_t bytes) {
  if (bytes == 0) return true;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  if (!arena.Has(begin)) return false;
  const Allocation& found = arena.PageOf(begin);
  return begin + bytes <= found.begin + found.bytes;
}

void Check(const void* pointer, size_t bytes, Access access) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (running.number < 0 || address - running.stack < Fiber::kStackBytes) return;
  if (arena.Has(address)) {
    CheckBounds(address, bytes, access);
    FollowAll(arena.histories, arena.begin, address, bytes, access, arena.IsShared(address));
  } else if (address - reinterpret_cast<uintptr_t>(&coordinates) < sizeof(coordinates)) {
    return;
  } else if (address - variables_begin < variables_bytes) {
    FollowAll(variable_histories, variables_begin, address, bytes, access, true);
  } else {
    const bool is_constant = address - constants_begin < variables_begin - constants_begin;
    const bool is_parameter = address - parameters.begin < parameters.bytes;
    if (access == Access::kRead && (is_constant || is_parameter)) return;
    Fail(cudaErrorIllegalAddress,
         "{} of {} bytes of the host's memory or of another thread's stack", NameOf(access), bytes);
  }
}

void CheckAlignment(const void* address, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(address) % alignment == 0) return;
  Fail(cudaErrorMisalignedAddress, "an access that is not at a multiple of {} bytes", alignment);
}

void BeginCopy(const void* target) {
  CheckAlignment(target, 16);
  if (!arena.IsShared(reinterpret_cast<uintptr_t>(target))) {
    Fail(cudaErrorInvalidAddressSpace, "an asynchronous copy to other than dynamic shared memory");
  }
  Check(target, 16, Access::kWrite);
  for (size_t i = 0; i < 16 / kGranule; ++i) CopyHistories(target)[i].writer = kCopyInFlight;
}

void EndCopy(const void* target) {
  const uint16_t self = static_cast<uint16_t>(running.number + 1);
  for (size_t i = 0; i < 16 / kGranule; ++i) {
    CopyHistories(target)[i].writer = self;
    CopyHistories(target)[i].write_time = now;
  }
}

char* DynamicSharedMemory() { return reinterpret_cast<char*>(arena.begin); }

void BeginGrid(size_t shared_bytes, const void* parameter_memory, size_t parameter_bytes) {
  arena.SetPages({arena.begin, kMaxSharedBytes}, {arena.begin, shared_bytes});
  // Copies that a launch which has failed has left in flight.
  for (size_t i = 0; i < kMaxSharedBytes / kGranule; ++i) arena.histories[i] = {};
  parameters = {reinterpret_cast<uintptr_t>(parameter_memory), parameter_bytes};
  grid_begin = now + 1;
}

void BeginBlock(size_t shared_bytes) {
  std::memset(DynamicSharedMemory(), 0xff, shared_bytes);
  block_begin = ++now;
}

void BeginInterval() { ++now; }

}  // namespace zg::emulation

// What the compiler calls at loads and stores. The names are those of the sanitizer of threads.
#define ZG_HOOKS(name, bytes)                                            \
  void __tsan_read##name(const void* address) {                          \
    zg::emulation::Check(address, bytes, zg::emulation::Access::kRead);  \
  }                                                                      \
  void __tsan_write##name(const void* address) {                         \
    zg::emulation::Check(address, bytes, zg::emulation::Access::kWrite); \
  }                                                                      \
  void __tsan_unaligned_read##name(const void* address) {                \
    zg::emulation::Check(address, bytes, zg::emulation::Access::kRead);  \
  }                                                                      \
  void __tsan_unaligned_write##name(const void* address) {               \
    zg::emulation::Check(address, bytes, zg::emulation::Access::kWrite); \
  }
extern "C" {
ZG_HOOKS(1, 1)
ZG_HOOKS(2, 2)
ZG_HOOKS(4, 4)
ZG_HOOKS(8, 8)
ZG_HOOKS(16, 16)
void __tsan_read_range(const void* address, size_t bytes) {
  zg::emulation::Check(address, bytes, zg::emulation::Access::kRead);
}
void __tsan_write_range(const void* address, size_t bytes) {
  zg::emulation::Check(address, bytes, zg::emulation::Access::kWrite);
}
void __tsan_init() {}
// Of the host's half of the sources.
uint8_t __tsan_atomic8_load(const uint8_t* value, int order) {
  return __atomic_load_n(value, order);
}
uint32_t __tsan_atomic32_fetch_add(uint32_t* value, uint32_t term, int order) {
  return __atomic_fetch_add(value, term, order);
}
uint32_t __tsan_atomic32_fetch_sub(uint32_t* value, uint32_t term, int order) {
  return __atomic_fetch_sub(value, term, order);
}
void __tsan_vptr_update(void**, void*) {}

// And at addresses that do not fit their type (-fsanitize=alignment), and at indices that do not
// fit their array (-fsanitize=bounds).
struct UbsanPlace {
  const char* file;
  uint32_t line;
  uint32_t column;
};
void __ubsan_handle_type_mismatch_v1(const UbsanPlace* place, const void* address) {
  zg::emulation::Fail(cudaErrorMisalignedAddress, "{}:{}: {} is a misaligned address", place->file,
                      place->line, address);
}
void __ubsan_handle_out_of_bounds(const UbsanPlace* place, uintptr_t index) {
  zg::emulation::Fail(cudaErrorIllegalAddress, "{}:{}: index {} is out of bounds", place->file,
                      place->line, static_cast<int64_t>(index));
}
}
