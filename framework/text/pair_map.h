// PairMap: a map from pairs of token ids to 64 bits, for many more look-ups than insertions.
#pragma once

#include <cstdint>
#include <vector>

namespace zg {

class PairMap {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  // Room for `num_pairs`, which must not be exceeded.
  explicit PairMap(size_t num_pairs = 0) {
    size_t slots = 16;
    while (slots < 2 * num_pairs) slots *= 2;
    slots_.resize(slots);
  }

  // Returns false if the pair is already there; its value then stays. Neither may be kNone.
  bool Insert(uint32_t left, uint32_t right, uint64_t value) {
    Slot& slot = slots_[SlotOf(KeyOf(left, right))];
    if (slot.key != kNone) return false;
    slot = {KeyOf(left, right), value};
    return true;
  }

  // kNone if the pair is not there.
  uint64_t Find(uint32_t left, uint32_t right) const {
    return slots_[SlotOf(KeyOf(left, right))].value;
  }

 private:
  struct Slot {
    uint64_t key = kNone;
    uint64_t value = kNone;
  };

  static uint64_t KeyOf(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

  // The slot that has the key, or the free slot for it.
  size_t SlotOf(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = (key * 0x9E3779B97F4A7C15) >> 20 & mask;
    while (slots_[slot].key != kNone && slots_[slot].key != key) slot = (slot + 1) & mask;
    return slot;
  }

  std::vector<Slot> slots_;
};

}  // namespace zg
