// WordCache: the tokens of recent short words, which most words of a text are.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace zg {

class WordCache {
 public:
  static constexpr size_t kMaxBytes = 22;
  static constexpr size_t kMaxIds = 10;

  struct Entry {
    uint8_t num_bytes = 0;  // 0: free
    uint8_t num_ids = 0;
    char bytes[kMaxBytes];
    uint32_t ids[kMaxIds];
  };
  static_assert(sizeof(Entry) == 64, "one cache line");

  WordCache() : entries_(kEntries) {}

  static bool Fits(std::string_view word) { return word.size() <= kMaxBytes; }

  // The only place for a word that fits: it holds the word, another word or none.
  Entry* PlaceOf(std::string_view word) { return &entries_[Hash(word) % kEntries]; }

  static bool Has(const Entry& entry, std::string_view word) {
    return entry.num_bytes == word.size() &&
           std::memcmp(entry.bytes, word.data(), word.size()) == 0;
  }

  // Leaves the entry unchanged if there are too many ids.
  static void Put(std::string_view word, const uint32_t* ids, size_t num_ids, Entry* entry) {
    if (num_ids > kMaxIds) return;
    entry->num_bytes = static_cast<uint8_t>(word.size());
    entry->num_ids = static_cast<uint8_t>(num_ids);
    std::memcpy(entry->bytes, word.data(), word.size());
    std::memcpy(entry->ids, ids, num_ids * sizeof(uint32_t));
  }

 private:
  static constexpr size_t kEntries = 1 << 16;

  static uint64_t Hash(std::string_view word) {
    constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;
    uint64_t hash = word.size() * kFactor;
    for (size_t i = 0; i < word.size(); i += 8) {
      uint64_t part = 0;
      std::memcpy(&part, word.data() + i, word.size() - i < 8 ? word.size() - i : 8);
      hash = (hash ^ part) * kFactor;
      hash ^= hash >> 32;
    }
    return hash;
  }

  std::vector<Entry> entries_;
};

}  // namespace zg
