// BpeTrainer: learns byte pair merges from text, as Hugging Face's BpeTrainer does with the whole
// byte alphabet.
//
//   BpeTrainer trainer(options);
//   ZG_RETURN_IF_ERROR(trainer.Add(text));  // any number of texts, one after the other
//   TokenizerParts parts = trainer.Train();
//
// The text is kept as counts of its distinct words. The most frequent pair of neighbouring tokens
// becomes a token, again and again, and the counts of the pairs around it are updated. Among pairs
// with equal counts the one whose left token has the smaller id comes first, then the one with the
// smaller right id. Ids: special tokens in their order, the 256 bytes in the order of their
// characters (byte_characters.h), then merges in the order of learning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/text/text_words.h"
#include "framework/text/tokenizer.h"

namespace zg {

struct BpeTrainerOptions {
  int64_t vocabulary_size = 0;  // including the special tokens and the bytes
  int64_t min_count = 2;        // rarer pairs are not joined
  std::vector<std::string> special_tokens;
  PreTokenizer pre_tokenizer;
};

class BpeTrainer {
 public:
  // Errors: the vocabulary has no room for the bytes and the special tokens; a special token is
  // empty, equal to a byte's character or given twice.
  static StatusOr<BpeTrainer> Create(const BpeTrainerOptions& options);

  // Counts the words of a text, any bytes. Special tokens in it are cut out.
  Status Add(std::string_view text);

  uint64_t num_words() const { return word_counts_.size(); }  // distinct words

  // Returns fewer tokens than requested if no pair is frequent enough.
  TokenizerParts Train() const;

 private:
  explicit BpeTrainer(const BpeTrainerOptions& options);

  BpeTrainerOptions options_;
  std::vector<AddedToken> special_tokens_;
  std::unordered_map<std::string, uint64_t> word_counts_;
};

}  // namespace zg
