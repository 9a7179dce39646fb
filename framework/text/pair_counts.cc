#include "framework/text/pair_counts.h"

#include <algorithm>
#include <utility>

namespace zg {

void PairCounts::AddWord(std::vector<uint32_t> ids, uint64_t count) {
  const auto word = static_cast<uint32_t>(words_.size());
  words_.push_back({std::move(ids), static_cast<int64_t>(count)});
  const std::vector<uint32_t>& tokens = words_.back().ids;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) Increase(KeyOf(tokens[i], tokens[i + 1]), word);
}

void PairCounts::Increase(uint64_t pair, uint32_t word) {
  Places& places = pairs_[pair];
  places.count += words_[word].count;
  if (places.words.empty() || places.words.back() != word) places.words.push_back(word);
}

std::optional<TokenPair> PairCounts::TakeMostFrequent(int64_t min_count) {
  if (!is_heap_) {
    for (const auto& [pair, places] : pairs_) heap_.push_back({places.count, pair});
    std::make_heap(heap_.begin(), heap_.end());
    is_heap_ = true;
  }
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate top = heap_.back();
    heap_.pop_back();
    const Places& places = pairs_.at(top.pair);
    if (places.words.empty()) continue;  // joined since
    if (places.count == top.count) {
      if (top.count < std::max<int64_t>(min_count, 1)) return std::nullopt;
      return TokenPair{static_cast<uint32_t>(top.pair >> 32), static_cast<uint32_t>(top.pair)};
    }
    heap_.push_back({places.count, top.pair});
    std::push_heap(heap_.begin(), heap_.end());
  }
  return std::nullopt;
}

void PairCounts::Join(TokenPair pair, uint32_t joined) {
  // The count stays: if the joined token existed before, the pair may occur in words again, and
  // then has the weight that it has in Hugging Face's trainer.
  const std::vector<uint32_t> words =
      std::exchange(pairs_.at(KeyOf(pair.left, pair.right)).words, {});
  increased_.clear();
  for (const uint32_t word : words) JoinInWord(pair, joined, word);
  std::sort(increased_.begin(), increased_.end());
  increased_.erase(std::unique(increased_.begin(), increased_.end()), increased_.end());
  for (const uint64_t key : increased_) {
    heap_.push_back({pairs_.at(key).count, key});
    std::push_heap(heap_.begin(), heap_.end());
  }
}

void PairCounts::JoinInWord(TokenPair pair, uint32_t joined, uint32_t word) {
  std::vector<uint32_t>& ids = words_[word].ids;
  const int64_t count = words_[word].count;
  const auto replace = [&](uint64_t before, uint64_t after) {
    pairs_.at(before).count -= count;
    Increase(after, word);
    increased_.push_back(after);
  };
  size_t kept = 0;  // ids[0 .. kept) are final
  for (size_t i = 0; i < ids.size(); ++i, ++kept) {
    if (ids[i] != pair.left || i + 1 == ids.size() || ids[i + 1] != pair.right) {
      ids[kept] = ids[i];
      continue;
    }
    if (kept > 0) replace(KeyOf(ids[kept - 1], pair.left), KeyOf(ids[kept - 1], joined));
    if (i + 2 < ids.size()) replace(KeyOf(pair.right, ids[i + 2]), KeyOf(joined, ids[i + 2]));
    ids[kept] = joined;
    ++i;
  }
  ids.resize(kept);
}

}  // namespace zg
