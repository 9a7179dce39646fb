// Rounds of validation data: as many as requested and available, at least one, or an error.

#include "models/text/text_windows.h"

#include <gtest/gtest.h>

namespace zg::models {
namespace {

TEST(ValidationRounds, AsManyAsFillRounds) {
  const TokenDataset data = *TokenDataset::FromTokens("text", std::vector<uint32_t>(101, 1), 2);
  EXPECT_EQ(*ValidationRounds(data, 10, 3, 1000), 3);  // of 10 windows
  EXPECT_EQ(*ValidationRounds(data, 10, 3, 7), 2);
  EXPECT_EQ(*ValidationRounds(data, 10, 3, 1), 1);
  EXPECT_EQ(*ValidationRounds(data, 10, 10, 1000), 1);
  EXPECT_EQ(
      ValidationRounds(data, 10, 11, 1000).status().message(),
      "--data: text: 10 validation contexts of 10 tokens, expected at least 11 (--batch times "
      "the ranks); give more data, a smaller --batch or a smaller --context");
}

}  // namespace
}  // namespace zg::models
