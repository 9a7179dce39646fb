#include "framework/text/bpe_model.h"

#include <algorithm>
#include <functional>

#include "framework/text/byte_characters.h"

namespace zg {
namespace {

constexpr uint32_t kRemoved = ~uint32_t{0};

// Rank and position in one number: the smallest is the next merge.
uint64_t Candidate(uint64_t merge, int32_t position) {
  return (merge & ~uint64_t{0xFFFFFFFF}) | static_cast<uint32_t>(position);
}

}  // namespace

StatusOr<BpeModel> BpeModel::Create(const std::string& path, const BpeVocabulary& vocabulary) {
  BpeModel model;
  std::unordered_map<uint32_t, const std::string*> tokens;
  for (const auto& [token, id] : vocabulary.ids) {
    if (const auto [other, is_new] = tokens.emplace(id, &token); !is_new) {
      return DataLoss("{}: vocabulary: got the id {} for '{}' and for '{}', expected one token",
                      path, id, std::min(token, *other->second), std::max(token, *other->second));
    }
    const auto bytes = CharactersAsBytes(token);
    if (bytes && vocabulary.keeps_whole_words) model.whole_words_.emplace(*bytes, id);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = BytesAsCharacters(std::string(1, static_cast<char>(byte)));
    const auto found = vocabulary.ids.find(token);
    if (found == vocabulary.ids.end()) {
      return DataLoss(
          "{}: vocabulary: got no token '{}' for the byte {}, expected one for each of "
          "the 256",
          path, token, byte);
    }
    model.byte_ids_[byte] = found->second;
  }
  model.merges_ = PairMap(vocabulary.merges.size());
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const auto& [left, right] = vocabulary.merges[rank];
    uint32_t ids[3] = {};
    const std::string parts[3] = {left, right, left + right};
    for (int i = 0; i < 3; ++i) {
      const auto found = vocabulary.ids.find(parts[i]);
      if (found == vocabulary.ids.end()) {
        return DataLoss("{}: merge {}: got '{}' and '{}', but '{}' is not in the vocabulary", path,
                        rank, left, right, parts[i]);
      }
      ids[i] = found->second;
    }
    if (!model.merges_.Insert(ids[0], ids[1], uint64_t{rank} << 32 | ids[2])) {
      return DataLoss("{}: merge {}: got '{}' and '{}' a second time", path, rank, left, right);
    }
  }
  return model;
}

void BpeModel::EncodeWord(std::string_view word, Scratch* scratch,
                          std::vector<uint32_t>* ids) const {
  if (!whole_words_.empty()) {
    if (const auto found = whole_words_.find(std::string(word)); found != whole_words_.end()) {
      ids->push_back(found->second);
      return;
    }
  }
  const auto size = static_cast<int32_t>(word.size());
  if (size == 1) {
    ids->push_back(byte_ids_[static_cast<uint8_t>(word[0])]);
    return;
  }
  Scratch& work = *scratch;
  work.ids.resize(size);
  work.previous.resize(size);
  work.next.resize(size);
  work.heap.clear();
  for (int32_t i = 0; i < size; ++i) {
    work.ids[i] = byte_ids_[static_cast<uint8_t>(word[i])];
    work.previous[i] = i - 1;
    work.next[i] = i + 1;
  }
  const auto merge_at = [&](int32_t left) {
    return merges_.Find(work.ids[left], work.ids[work.next[left]]);
  };
  for (int32_t i = 0; i + 1 < size; ++i) {
    const uint64_t merge = merge_at(i);
    if (merge != PairMap::kNone) work.heap.push_back(Candidate(merge, i));
  }
  std::make_heap(work.heap.begin(), work.heap.end(), std::greater<>());
  const auto push = [&](int32_t left) {
    const uint64_t merge = merge_at(left);
    if (merge == PairMap::kNone) return;
    work.heap.push_back(Candidate(merge, left));
    std::push_heap(work.heap.begin(), work.heap.end(), std::greater<>());
  };
  while (!work.heap.empty()) {
    std::pop_heap(work.heap.begin(), work.heap.end(), std::greater<>());
    const uint64_t candidate = work.heap.back();
    work.heap.pop_back();
    const auto left = static_cast<int32_t>(candidate & 0xFFFFFFFF);
    // The tokens at this place may have been joined with others since the candidate was found.
    if (work.ids[left] == kRemoved || work.next[left] >= size) continue;
    const uint64_t merge = merge_at(left);
    if (merge == PairMap::kNone || Candidate(merge, left) != candidate) continue;
    const int32_t right = work.next[left];
    work.ids[left] = static_cast<uint32_t>(merge);
    work.ids[right] = kRemoved;
    work.next[left] = work.next[right];
    if (work.next[left] < size) {
      work.previous[work.next[left]] = left;
      push(left);
    }
    if (work.previous[left] >= 0) push(work.previous[left]);
  }
  for (int32_t i = 0; i < size; i = work.next[i]) ids->push_back(work.ids[i]);
}

}  // namespace zg
