#include "models/text/encoded_text.h"

#include <utility>

namespace zg::models {

StatusOr<TokenDataset> EncodeText(const TokenDataset& text, const Tokenizer& tokenizer,
                                  int vocabulary) {
  std::string bytes;
  bytes.reserve(text.size());
  for (uint64_t i = 0; i < text.size(); ++i) bytes.push_back(static_cast<char>(text[i]));
  ZG_ASSIGN_OR_RETURN(std::vector<uint32_t> tokens, TextEncoder(tokenizer).encode(bytes));
  return TokenDataset::FromTokens(text.name(), std::move(tokens), vocabulary);
}

StatusOr<std::string> DecodeTokens(const TokenDataset& data, uint64_t begin, uint64_t size,
                                   const Tokenizer& tokenizer) {
  std::vector<uint32_t> ids;
  for (uint64_t i = begin; i < begin + size; ++i) ids.push_back(static_cast<uint32_t>(data[i]));
  return tokenizer.decode(ids);
}

std::vector<int64_t> BytesOfSample(const std::vector<int64_t>& ids, const Tokenizer& tokenizer) {
  std::vector<int64_t> bytes;
  for (const int64_t id : ids) {
    const StatusOr<std::string> token = tokenizer.decode({static_cast<uint32_t>(id)});
    for (const char byte : token.ok() ? *token : "?") bytes.push_back(static_cast<uint8_t>(byte));
  }
  return bytes;
}

}  // namespace zg::models
