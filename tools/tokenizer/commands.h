// What //tools:tokenizer does, as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg::tokenizer_tool {

struct TrainOptions {
  int64_t vocabulary_size = 0;
  int64_t min_count = 2;                    // a pair must stand there as often to become a token
  std::string pattern = "gpt2";             // framework/text/tokenizer_writer.h
  std::vector<std::string> special_tokens;  // they have the first ids
  std::string out;                          // a directory, which gets tokenizer.json
  std::vector<std::string> files;           // texts
  bool may_replace = false;
};

// Learns a vocabulary from texts, which are read one after the other. The text says its size, and
// when it is smaller than asked for.
StatusOr<std::string> Train(const TrainOptions& options);

struct EncodeOptions {
  std::string tokenizer;           // as Tokenizer::open takes it
  std::vector<std::string> files;  // texts, each encoded for itself
  std::string out;                 // a token file (framework/io/token_file.h)
  std::string after_file;          // an added token that follows each text; empty: none
  bool may_replace = false;
};

// Encodes files of any size into one token file. The text says how many tokens they have become.
StatusOr<std::string> Encode(const EncodeOptions& options);

struct DecodeOptions {
  std::string tokenizer;
  std::string file;  // a token file, with or without a header
  std::string out;   // the bytes; empty: standard output
  bool may_replace = false;
};

// Writes the bytes that the tokens stand for. The text is what standard output gets.
StatusOr<std::string> Decode(const DecodeOptions& options);

// Error: `path` exists and may not be replaced, or is not a regular file.
Status CheckTarget(const std::string& path, bool may_replace);

}  // namespace zg::tokenizer_tool
