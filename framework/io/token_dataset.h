// TokenDataset: a read-only sequence of tokens for training language models, or a part of one. Its
// batches are a function of (seed, micro-batch index) alone, so the data order does not depend on
// the number of ranks.
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
  static bool IsTokenFile(const std::string& path);  // whether its name ends with .bin

  // Opens a single `.bin` file as a token file, anything else as text. `vocabulary` as in the
  // functions below.
  static StatusOr<TokenDataset> Open(const std::vector<std::string>& paths,
                                     std::optional<int> vocabulary = std::nullopt);

  // Bytes are tokens. Several files are joined in the given order, with a newline between two of
  // them if the first does not end with one. A directory stands for all files below it, in the
  // order of their paths. The vocabulary is 256 unless given.
  static StatusOr<TokenDataset> FromTextFiles(const std::vector<std::string>& paths,
                                              std::optional<int> vocabulary = std::nullopt);

  // Little-endian tokens, memory-mapped: u16 without a header (nanoGPT), or u16 or u32 after
  // llm.c's header of 1024 bytes, which its magic number identifies (token_file.h). With a given
  // vocabulary (the model's), a token beyond it is an error; otherwise the vocabulary is the
  // largest token + 1. Either reads the file once.
  static StatusOr<TokenDataset> FromTokenFile(const std::string& path,
                                              std::optional<int> vocabulary = std::nullopt);

  // Tokens of a text that was encoded in this program; `name` is used in messages. Error: a token
  // that is not below the vocabulary.
  static StatusOr<TokenDataset> FromTokens(const std::string& name, std::vector<uint32_t> tokens,
                                           int vocabulary);

  const std::string& name() const { return name_; }  // files and part, for messages
  uint64_t size() const { return size_; }            // tokens
  int vocabulary_size() const { return vocabulary_size_; }
  int64_t operator[](uint64_t position) const;

  // Tokens [begin, begin + size).
  TokenDataset Slice(uint64_t begin, uint64_t size) const;

  // The last floor(size() * validation_fraction) tokens for validation, those before for training.
  // Errors: the fraction is not between 0 and 1, or a part would be empty.
  StatusOr<TokenSplit> Split(double validation_fraction) const;

  // Error if there is not even one window of `context` inputs and their targets.
  Status CheckContext(int context) const;

  // Windows at random positions, drawn with replacement. x and y are (batch, context); y[b, t] is
  // the token after x[b, t]. Row b is draw number micro_batch_index * batch + b of the seed, so
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
