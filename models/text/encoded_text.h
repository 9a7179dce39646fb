// Converts texts of the demo to tokens of a vocabulary, and back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/token_dataset.h"
#include "framework/text/tokenizer.h"

namespace zg::models {

// `text` has bytes as tokens. `vocabulary` is the model's. Error: a token that is not below it.
StatusOr<TokenDataset> EncodeText(const TokenDataset& text, const Tokenizer& tokenizer,
                                  int vocabulary);

// The bytes of tokens [begin, begin + size) of `data`. Error: an id without a token.
StatusOr<std::string> DecodeTokens(const TokenDataset& data, uint64_t begin, uint64_t size,
                                   const Tokenizer& tokenizer);

// The bytes of sampled tokens; '?' for an id without a token, which a model with a larger
// vocabulary may draw.
std::vector<int64_t> BytesOfSample(const std::vector<int64_t>& ids, const Tokenizer& tokenizer);

}  // namespace zg::models
