// BpeModel: byte pair encoding. A word begins as its bytes. Among the neighbours that a merge
// joins, those of the earliest merge are joined first (leftmost first), until none is left. Source:
// Sennrich et al., "Neural machine translation of rare words with subword units", 2016.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/text/pair_map.h"

namespace zg {

// The vocabulary as in a tokenizer's files; bytes are written as characters (byte_characters.h).
struct BpeVocabulary {
  std::unordered_map<std::string, uint32_t> ids;
  std::vector<std::pair<std::string, std::string>> merges;  // the earliest first
  bool keeps_whole_words = false;  // "ignore_merges": a word that is a token is not merged
};

class BpeModel {
 public:
  // `path` is used in messages. Errors: a byte has no token; a merge refers to, or makes, something
  // that is not a token; two tokens have one id, or a merge occurs twice.
  static StatusOr<BpeModel> Create(const std::string& path, const BpeVocabulary& vocabulary);

  // Scratch for the encoding of a word; for one thread at a time.
  struct Scratch {
    std::vector<uint32_t> ids;
    std::vector<int32_t> previous, next;
    std::vector<uint64_t> heap;
  };

  // Appends the tokens of `word`, any bytes, to `ids`. Takes n log n time in the word's bytes,
  // which must be fewer than 2^31.
  void EncodeWord(std::string_view word, Scratch* scratch, std::vector<uint32_t>* ids) const;

 private:
  std::array<uint32_t, 256> byte_ids_ = {};
  PairMap merges_;                                         // to rank << 32 | result
  std::unordered_map<std::string, uint32_t> whole_words_;  // key: bytes; empty unless whole words
                                                           // are kept
};

}  // namespace zg
