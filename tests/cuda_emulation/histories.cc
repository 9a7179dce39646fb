#include "tests/cuda_emulation/histories.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "framework/base/check.h"
#include "tests/cuda_emulation/launch.h"

namespace zg::emulation {

Intervals intervals;

namespace {

constexpr size_t kWordBytes = 4;

// Special values instead of a thread's number.
constexpr uint16_t kSeveral = 0xffff;  // readers
constexpr uint16_t kAtomics = 0xfffe;
constexpr uint16_t kCopyInFlight = 0xfffd;
constexpr uint16_t kApart = 0xfffc;  // for a word: its bytes have histories of their own

// Whether an access by another thread at `time` is ordered before one of the running thread.
bool IsUnordered(uint32_t time, uint16_t thread, uint16_t self, bool is_shared) {
  if (time == intervals.now) return thread != self;
  return !is_shared && time >= intervals.grid_begin && time < intervals.block_begin;
}

uint16_t NumberOfRunning() { return static_cast<uint16_t>(running.number + 1); }

}  // namespace

void* ReserveZeros(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ZG_CHECK(memory != MAP_FAILED, "no memory for the emulated device");
  return memory;
}

Histories::Histories(uintptr_t begin, size_t bytes)
    : begin_(begin / kWordBytes * kWordBytes),
      words_(static_cast<History*>(ReserveZeros((bytes / kWordBytes + 2) * sizeof(History)))),
      bytes_(static_cast<History*>(ReserveZeros((bytes + 2 * kWordBytes) * sizeof(History)))) {}

[[gnu::always_inline]] inline void Histories::FollowOne(History* history, uint16_t self,
                                                        uintptr_t address, Access access,
                                                        bool is_shared) {
  if (history->writer == kCopyInFlight) {
    Fail(cudaErrorLaunchFailure, "{} of shared memory while a copy to it is in flight",
         NameOf(access));
  }
  const bool was_written = history->write_time >= intervals.block_begin;
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
    const bool is_shared_with_others =
        history->read_time == intervals.now && history->reader != self;
    history->reader = is_shared_with_others ? kSeveral : self;
    history->read_time = intervals.now;
    return;
  }
  if (IsUnordered(history->read_time, history->reader, self, is_shared)) {
    Fail(cudaErrorLaunchFailure,
         "a race: {} of {} memory (address {:#x}) that another thread reads", NameOf(access),
         is_shared ? "shared" : "global", address);
  }
  history->writer = access == Access::kAtomic ? kAtomics : self;
  history->write_time = intervals.now;
}

void Histories::Follow(uintptr_t address, size_t bytes, Access access, bool is_shared) {
  const uint16_t self = NumberOfRunning();
  const size_t begin = address - begin_;
  const size_t end = begin + bytes;
  for (size_t word = begin / kWordBytes; word * kWordBytes < end; ++word) {
    History* const whole = &words_[word];
    History* const of_bytes = &bytes_[word * kWordBytes];
    const size_t first = std::max(begin, word * kWordBytes) - word * kWordBytes;
    const size_t last = std::min(end - word * kWordBytes, kWordBytes);
    const bool is_whole = last - first == kWordBytes;
    if (whole->writer != kApart) {
      if (is_whole) {
        FollowOne(whole, self, address, access, is_shared);
        continue;
      }
      std::fill_n(of_bytes, kWordBytes, *whole);
      whole->writer = kApart;
    }
    for (size_t byte = first; byte < last; ++byte) {
      FollowOne(&of_bytes[byte], self, address, access, is_shared);
    }
    // Each byte equals the previous one.
    if (is_whole && std::memcmp(of_bytes, of_bytes + 1, (kWordBytes - 1) * sizeof(History)) == 0) {
      *whole = *of_bytes;
    }
  }
}

template <typename Change>
void Histories::ChangeCopied(uintptr_t address, Change change) {
  for (size_t word = (address - begin_) / kWordBytes, i = 0; i < 16 / kWordBytes; ++i, ++word) {
    History* const of_bytes = &bytes_[word * kWordBytes];
    if (words_[word].writer == kApart) {
      std::for_each(of_bytes, of_bytes + kWordBytes, change);
    } else {
      change(words_[word]);
    }
  }
}

void Histories::BeginCopy(uintptr_t address) {
  ChangeCopied(address, [](History& history) { history.writer = kCopyInFlight; });
}

void Histories::EndCopy(uintptr_t address) {
  ChangeCopied(address, [self = NumberOfRunning()](History& history) {
    history.writer = self;
    history.write_time = intervals.now;
  });
}

void Histories::Clear(size_t bytes) {
  std::memset(words_, 0, bytes / kWordBytes * sizeof(History));
}

}  // namespace zg::emulation
