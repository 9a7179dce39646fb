// TokenDataset: a read-only sequence of tokens for training language models, or a part of one. Its
// batches are a function of (seed, micro-batch index) alone, so data order ignores how many ranks
// there are.
//
//   ZG_ASSIGN_OR_RETURN(TokenDataset data, TokenDataset::Open({"corpus.txt"}));
//   ZG_ASSIGN_OR_RETURN(TokenSplit split, data.Split(0.1));
//   ZG_RETURN_IF_ERROR(split.train.FillBatch(seed, micro_batch_index, batch, context, x, y));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg {

struct TokenSplit;

// Cheap to copy: copies and parts share the tokens.
class TokenDataset {
 public:
  static bool IsTokenFile(const std::string& path);  // its name ends with .bin

  // One `.bin` file is a token file; anything else is text. `vocabulary` as in the functions below.
  static StatusOr<TokenDataset> Open(const std::vector<std::string>& paths,
                                     std::optional<int> vocabulary = std::nullopt);

  // Bytes are tokens. Several files are joined in the given order; a newline goes between two of
  // them where the first does not end with one. A directory stands for the files in and below it,
  // in the order of their paths. The vocabulary is 256 unless given.
  static StatusOr<TokenDataset> FromTextFiles(const std::vector<std::string>& paths,
                                              std::optional<int> vocabulary = std::nullopt);

  // Little-endian tokens, memory-mapped: u16 without a header (nanoGPT), or u16 or u32 after the
  // 1024 bytes of llm.c's, which its magic number tells (token_file.h). Given a vocabulary (that of
  // the model), a token beyond it is an error; otherwise the vocabulary is the largest token + 1.
  // Either reads the file once.
  static StatusOr<TokenDataset> FromTokenFile(const std::string& path,
                                              std::optional<int> vocabulary = std::nullopt);

  // Tokens of a text that was encoded here; `name` serves messages. Error: a token that is not below
  // the vocabulary.
  static StatusOr<TokenDataset> FromTokens(const std::string& name, std::vector<uint32_t> tokens,
                                           int vocabulary);

  const std::string& name() const { return name_; }  // the files and the part, for messages
  uint64_t size() const { return size_; }            // tokens
  int vocabulary_size() const { return vocabulary_size_; }
  int64_t operator[](uint64_t position) const;

  // Tokens [begin, begin + size).
  TokenDataset Slice(uint64_t begin, uint64_t size) const;

  // The last floor(size() * validation_fraction) tokens for validation, those before for training.
  // Errors: the fraction is not between 0 and 1, or a part would be empty.
  StatusOr<TokenSplit> Split(double validation_fraction) const;

  // Error when there is not one window of `context` inputs and their targets.
  Status CheckContext(int context) const;

  // Windows at random positions, drawn with replacement. x and y are (batch, context); y[b, t] is
  // the token after x[b, t]. Row b is draw micro_batch_index * batch + b of the seed, so that
  // micro-batches of other sizes see the same windows in the same order.
  Status FillBatch(uint64_t seed, uint64_t micro_batch_index, int batch, int context, int64_t* x,
                   int64_t* y) const;

  // For evaluation: the windows in order, without overlap of their targets. The tokens after the
  // last whole window are left out.
  uint64_t num_windows(int context) const;
  // Windows first_window .. first_window + batch - 1, which must exist.
  Status FillWindows(uint64_t first_window, int batch, int context, int64_t* x, int64_t* y) const;

 private:
  struct Storage;

  TokenDataset(std::string name, std::shared_ptr<const Storage> storage);

  Status SetVocabulary(std::optional<int> vocabulary);
  void CopyWindow(uint64_t begin, int context, int64_t* x, int64_t* y) const;

  std::string name_;
  std::shared_ptr<const Storage> storage_;
  uint64_t begin_ = 0;  // in the storage
  uint64_t size_ = 0;
  int vocabulary_size_ = 0;
};

struct TokenSplit {
  TokenDataset train;
  TokenDataset validation;
};

}  // namespace zg
