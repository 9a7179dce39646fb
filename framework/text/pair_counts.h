// PairCounts: the number of occurrences of every pair of neighbouring tokens in a collection of
// words, updated while pairs are joined.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace zg {

struct TokenPair {
  uint32_t left = 0;
  uint32_t right = 0;
};

class PairCounts {
 public:
  // Adds a word that occurs `count` times in the text. All words must be added before the first
  // pair is taken.
  void AddWord(std::vector<uint32_t> ids, uint64_t count);

  // The most frequent pair among those not yet joined at their current places; among equally
  // frequent ones the pair with the smallest ids, the left one first. Nothing if all are rarer than
  // `min_count` or there is none.
  std::optional<TokenPair> TakeMostFrequent(int64_t min_count);

  // Joins the pair that was taken last into the token `joined` in all words, from the left.
  void Join(TokenPair pair, uint32_t joined);

 private:
  struct Word {
    std::vector<uint32_t> ids;
    int64_t count = 0;
  };
  struct Places {
    int64_t count = 0;
    std::vector<uint32_t> words;  // words that may contain it; no two equal ones in a row
  };
  struct Candidate {
    int64_t count = 0;  // the count when it was recorded; it may have fallen since
    uint64_t pair = 0;
    // The smaller one is taken later.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  static uint64_t KeyOf(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  void Increase(uint64_t pair, uint32_t word);
  void JoinInWord(TokenPair pair, uint32_t joined, uint32_t word);

  std::vector<Word> words_;
  std::unordered_map<uint64_t, Places> pairs_;
  std::vector<Candidate> heap_;
  std::vector<uint64_t> increased_;  // pairs that the current join has increased
  bool is_heap_ = false;
};

}  // namespace zg
