// The last accesses to each byte of the emulated device: finds reads of bytes that nobody has
// written, and two accesses of which neither is ordered before the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/cuda_emulation/memory.h"

namespace zg::emulation {

// Barriers cut the time of a program into intervals, numbered from its start.
struct Intervals {
  uint32_t now = 1;
  uint32_t grid_begin = 1;
  uint32_t block_begin = 1;
};
extern Intervals intervals;

// For the memory from `begin` on. Four bytes that have always been accessed together share one
// history.
class Histories {
 public:
  Histories(uintptr_t begin, size_t bytes);

  // Fails like Check().
  void Follow(uintptr_t address, size_t bytes, Access access, bool is_shared);
  // For an asynchronous copy's 16 bytes, which Follow has seen as a write.
  void BeginCopy(uintptr_t address);
  void EndCopy(uintptr_t address);
  // Forgets the first bytes.
  void Clear(size_t bytes);

 private:
  struct History {
    uint32_t write_time;
    uint32_t read_time;
    uint16_t writer;
    uint16_t reader;
  };
  static void FollowOne(History* history, uint16_t self, uintptr_t address, Access access,
                        bool is_shared);
  template <typename Change>
  void ChangeCopied(uintptr_t address, Change change);

  uintptr_t begin_;
  History* words_;
  History* bytes_;  // for words whose bytes are tracked separately
};

// Zeroed memory that takes physical memory only where it is written.
void* ReserveZeros(size_t bytes);

}  // namespace zg::emulation
