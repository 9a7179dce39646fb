#include "models/text/encoded_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/io/test_file.h"

namespace zg::models {
namespace {

const Tokenizer& SmallGpt2() {
  static const Tokenizer tokenizer = Tokenizer::open("tests/reference/tokenizer_gpt2.json").value();
  return tokenizer;
}

TEST(EncodedText, HasTheBytesOfTheText) {
  const std::string text = "The quick brown fox\n\xff jumps over the lazy dog.\n";
  const TokenDataset bytes = TokenDataset::FromTextFiles({WriteTestFile("fox.txt", text)}).value();
  const StatusOr<TokenDataset> tokens = EncodeText(bytes, SmallGpt2(), 700);
  ASSERT_TRUE(tokens.ok()) << tokens.status().ToString();
  EXPECT_LT(tokens->size(), bytes.size());
  EXPECT_EQ(tokens->vocabulary_size(), 700);
  EXPECT_EQ(DecodeTokens(*tokens, 0, tokens->size(), SmallGpt2()).value(), text);
  const std::string first = DecodeTokens(*tokens, 0, 1, SmallGpt2()).value();
  EXPECT_EQ(first + DecodeTokens(*tokens, 1, tokens->size() - 1, SmallGpt2()).value(), text);
  EXPECT_NE(EncodeText(bytes, SmallGpt2(), 400).status().message().find("vocabulary of 400"),
            std::string::npos);
}

TEST(EncodedText, ASampleMayHaveIdsThatNoTokenHas) {
  const std::vector<uint32_t> ids = TextEncoder(SmallGpt2()).encode("fox").value();
  std::vector<int64_t> sample(ids.begin(), ids.end());
  sample.push_back(700);
  EXPECT_EQ(BytesOfSample(sample, SmallGpt2()), (std::vector<int64_t>{'f', 'o', 'x', '?'}));
}

}  // namespace
}  // namespace zg::models
