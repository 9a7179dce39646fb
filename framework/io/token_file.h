// Token files: llm.c's header of 256 i32 (magic, version, number of tokens, zeros), then the
// tokens, all little-endian. TokenDataset reads these, and nanoGPT's files, which are u16 without a
// header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/atomic_file.h"

namespace zg {

struct TokenFileFormat {
  int32_t magic = 0;
  int32_t version = 0;
  int token_bytes = 0;
};

inline constexpr uint64_t kTokenHeaderBytes = 1024;
inline constexpr TokenFileFormat kU16TokenFile = {20240520, 1, 2};  // as for GPT-2
inline constexpr TokenFileFormat kU32TokenFile = {20240801, 7, 4};  // as for Llama 3

// Writes a token file, which appears under its name complete or not at all.
class TokenFileWriter {
 public:
  // For tokens below `vocabulary_size`: u16 if they fit, else u32.
  static StatusOr<TokenFileWriter> Create(const std::string& path, int64_t vocabulary_size);

  // Tokens must be below the vocabulary size.
  Status Write(const std::vector<uint32_t>& tokens);

  // Error: there is no token, or there are 2^31 or more, which the header cannot hold.
  Status Commit();

  int64_t num_tokens() const { return num_tokens_; }
  int token_bytes() const { return format_.token_bytes; }

 private:
  TokenFileWriter(AtomicFile file, TokenFileFormat format, int64_t vocabulary_size)
      : file_(std::move(file)), format_(format), vocabulary_size_(vocabulary_size) {}

  AtomicFile file_;
  TokenFileFormat format_;
  int64_t vocabulary_size_;
  int64_t num_tokens_ = 0;
  std::vector<uint16_t> narrow_;  // written next
};

}  // namespace zg
