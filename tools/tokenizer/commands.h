// The commands of //tools:tokenizer, which return text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg::tokenizer_tool {

struct TrainOptions {
  int64_t vocabulary_size = 0;
  int64_t min_count = 2;                    // rarer pairs do not become tokens
  std::string pattern = "gpt2";             // framework/text/tokenizer_writer.h
  std::vector<std::string> special_tokens;  // they have the first ids
  std::string out;                          // a directory, which gets tokenizer.json
  std::vector<std::string> files;           // texts
  bool may_replace = false;
};

// Learns a vocabulary from texts, which are read one after the other. The text reports its size,
// and whether it is smaller than requested.
StatusOr<std::string> Train(const TrainOptions& options);

struct EncodeOptions {
  std::string tokenizer;           // in the form that Tokenizer::open takes
  std::vector<std::string> files;  // texts, each encoded separately
  std::string out;                 // a token file (framework/io/token_file.h)
  std::string after_file;          // an added token after each text; empty: none
  bool may_replace = false;
};

// Encodes files of any size into one token file. The text reports the number of tokens.
StatusOr<std::string> Encode(const EncodeOptions& options);

struct DecodeOptions {
  std::string tokenizer;
  std::string file;  // a token file, with or without a header
  std::string out;   // the bytes; empty: standard output
  bool may_replace = false;
};

// Writes the bytes of the tokens. The returned text goes to standard output.
StatusOr<std::string> Decode(const DecodeOptions& options);

// Error: `path` exists and may not be replaced, or is not a regular file.
Status CheckTarget(const std::string& path, bool may_replace);

}  // namespace zg::tokenizer_tool
