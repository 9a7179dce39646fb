// Text: what a language demo trains on, as tokens for training and for validation, and what the
// tokens mean: bytes, tokens of --tokenizer, or tokens of a file that nothing explains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/token_dataset.h"
#include "framework/text/tokenizer.h"
#include "models/text/sample.h"
#include "models/text/text_flags.h"

namespace zg::models {

class Text {
 public:
  // `vocabulary` is the number of tokens that the model knows; 0: that of the tokenizer, else that of
  // the data, 256 for text. `vocabulary_flag` is the flag that gave it, for messages. Errors name
  // their flag: there is no text; a bad tokenizer; a token beyond the vocabulary; a part that is
  // shorter than `context` tokens plus one.
  static StatusOr<Text> Open(const TextFlags& flags, int64_t vocabulary, int64_t context,
                             const std::string& vocabulary_flag = "");

  const TokenSplit& tokens() const { return tokens_; }
  int64_t vocabulary() const { return tokens_.train.vocabulary_size(); }
  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }
  bool is_readable() const { return tokenizer_.has_value() || vocabulary() <= 256; }

  // What a sample continues: --prompt, or else the beginning of the validation part, a little more
  // than half a context. Errors: a prompt that is longer than the context; a vocabulary that lacks
  // its tokens, or that no tokenizer explains.
  StatusOr<std::vector<int64_t>> Prompt(const SampleFlags& flags, int64_t context) const;
  // The tokens that a model has continued it with, as a paragraph for the user.
  std::string Continuation(const SampleFlags& flags, const std::vector<int64_t>& tokens) const;

  // The validation loss for the user, followed by `remark` in the same line. With a tokenizer also in
  // bits per byte, which can be compared between vocabularies. `nats_per_token` is the mean over the
  // first `num_tokens` targets of the validation part.
  StatusOr<std::string> LossLines(double nats_per_token, uint64_t num_tokens,
                                  const std::string& remark = "") const;

 private:
  Text(TokenSplit tokens, std::optional<Tokenizer> tokenizer)
      : tokens_(std::move(tokens)), tokenizer_(std::move(tokenizer)) {}

  StatusOr<std::vector<int64_t>> TokensOfPrompt(const std::string& prompt, int64_t context) const;

  TokenSplit tokens_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace zg::models
