#include "tests/cuda_emulation/memory.h"

#include <cstdint>
#include <cstring>
#include <map>

#include "tests/cuda_emulation/fibers.h"
#include "tests/cuda_emulation/histories.h"
#include "tests/cuda_emulation/launch.h"

// The addresses where the linker puts the program's constants and its variables without initial
// values. The latter include the __shared__ variables of kernels.
extern "C" char __executable_start[], __bss_start[], _end[];

namespace zg::emulation {
namespace {

constexpr size_t kArenaBytes = size_t{256} << 20;
constexpr size_t kPageBytes = 256;  // an allocation begins with one and shares none
struct Allocation {
  uintptr_t begin;
  size_t bytes;
};

struct Arena {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(ReserveZeros(kArenaBytes));
  Histories histories{begin, kArenaBytes};
  Allocation* const pages =  // the owner of each page
      static_cast<Allocation*>(ReserveZeros(kArenaBytes / kPageBytes * sizeof(Allocation)));
  // Key: begin; value: bytes.
  std::map<uintptr_t, size_t>& taken = *new std::map<uintptr_t, size_t>;

  // The address of the first gap of so many bytes; 0 if there is none. The dynamic shared memory
  // comes first.
  uintptr_t Find(size_t bytes) const {
    uintptr_t at = begin + (kMaxSharedBytes / kPageBytes + 1) * kPageBytes;
    for (const auto& [other, other_bytes] : taken) {
      if (other - at >= bytes) return at;
      at = other + other_bytes;
    }
    return begin + kArenaBytes - at >= bytes ? at : 0;
  }

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
Histories variable_histories(variables_begin, variables_bytes);

Allocation parameters = {};

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

void CheckOutsideOfStack(uintptr_t address, size_t bytes, Access access) {
  if (arena.Has(address)) {
    CheckBounds(address, bytes, access);
    arena.histories.Follow(address, bytes, access, arena.IsShared(address));
  } else if (address - reinterpret_cast<uintptr_t>(&coordinates) < sizeof(coordinates)) {
    return;
  } else if (address - variables_begin < variables_bytes) {
    variable_histories.Follow(address, bytes, access, true);
  } else {
    const bool is_constant = address - constants_begin < variables_begin - constants_begin;
    const bool is_parameter = address - parameters.begin < parameters.bytes;
    if (access == Access::kRead && (is_constant || is_parameter)) return;
    Fail(cudaErrorIllegalAddress,
         "{} of {} bytes of the host's memory or of another thread's stack", NameOf(access), bytes);
  }
}

// Most accesses are to the thread's own stack.
inline void CheckInline(const void* pointer, size_t bytes, Access access) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (running.number < 0 || address - running.stack < Fiber::kStackBytes) return;
  CheckOutsideOfStack(address, bytes, access);
}

}  // namespace

const char* NameOf(Access access) {
  return access == Access::kRead ? "a read" : access == Access::kWrite ? "a write" : "an atomic";
}

void* Allocate(size_t bytes) {
  if (bytes > kArenaBytes) return nullptr;
  const size_t taken = (bytes + kPageBytes) / kPageBytes * kPageBytes;  // including a guard
  const Allocation allocation = {arena.Find(taken), bytes};
  if (allocation.begin == 0) return nullptr;
  arena.taken.emplace(allocation.begin, taken);
  arena.SetPages(allocation, allocation);
  return reinterpret_cast<void*>(allocation.begin);
}

bool Free(void* memory) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  if (arena.taken.erase(begin) == 0) return false;
  arena.SetPages(arena.PageOf(begin), {});
  return true;
}

void FreeAll() {
  while (!arena.taken.empty()) Free(reinterpret_cast<void*>(arena.taken.begin()->first));
}

size_t FreeBytes() {
  size_t free_bytes = kArenaBytes;
  for (const auto& [begin, bytes] : arena.taken) free_bytes -= bytes;
  return free_bytes;
}

bool IsAllocated(const void* address, size_t bytes) {
  if (bytes == 0) return true;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  if (!arena.Has(begin)) return false;
  const Allocation& found = arena.PageOf(begin);
  return begin + bytes <= found.begin + found.bytes;
}

void Check(const void* pointer, size_t bytes, Access access) {
  CheckInline(pointer, bytes, access);
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
  arena.histories.BeginCopy(reinterpret_cast<uintptr_t>(target));
}

void EndCopy(const void* target) { arena.histories.EndCopy(reinterpret_cast<uintptr_t>(target)); }

char* DynamicSharedMemory() { return reinterpret_cast<char*>(arena.begin); }

void BeginGrid(size_t shared_bytes, const void* parameter_memory, size_t parameter_bytes) {
  arena.SetPages({arena.begin, kMaxSharedBytes}, {arena.begin, shared_bytes});
  // Copies that a failed launch has left in flight.
  arena.histories.Clear(kMaxSharedBytes);
  parameters = {reinterpret_cast<uintptr_t>(parameter_memory), parameter_bytes};
  intervals.grid_begin = intervals.now + 1;
}

void BeginBlock(size_t shared_bytes) {
  std::memset(DynamicSharedMemory(), 0xff, shared_bytes);
  intervals.block_begin = ++intervals.now;
}

void BeginInterval() { ++intervals.now; }

}  // namespace zg::emulation

// The functions that the compiler calls at loads and stores. They have the names of the thread
// sanitizer's.
#define ZG_HOOKS(name, bytes)                                                  \
  void __tsan_read##name(const void* address) {                                \
    zg::emulation::CheckInline(address, bytes, zg::emulation::Access::kRead);  \
  }                                                                            \
  void __tsan_write##name(const void* address) {                               \
    zg::emulation::CheckInline(address, bytes, zg::emulation::Access::kWrite); \
  }                                                                            \
  void __tsan_unaligned_read##name(const void* address) {                      \
    zg::emulation::CheckInline(address, bytes, zg::emulation::Access::kRead);  \
  }                                                                            \
  void __tsan_unaligned_write##name(const void* address) {                     \
    zg::emulation::CheckInline(address, bytes, zg::emulation::Access::kWrite); \
  }
extern "C" {
ZG_HOOKS(1, 1)
ZG_HOOKS(2, 2)
ZG_HOOKS(4, 4)
ZG_HOOKS(8, 8)
ZG_HOOKS(16, 16)
void __tsan_read_range(const void* address, size_t bytes) {
  zg::emulation::CheckInline(address, bytes, zg::emulation::Access::kRead);
}
void __tsan_write_range(const void* address, size_t bytes) {
  zg::emulation::CheckInline(address, bytes, zg::emulation::Access::kWrite);
}
void __tsan_init() {}
// Called by the host code of the sources.
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

// Likewise at misaligned addresses (-fsanitize=alignment), and at indices outside of their array
// (-fsanitize=bounds).
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
