// Windows to validate on: as many as wanted and available, or an error.

#include "models/text/text_windows.h"

#include <gtest/gtest.h>

namespace zg::models {
namespace {

TEST(NumValidationWindows, AsManyAsThereAre) {
  const TokenDataset data = *TokenDataset::FromTokens("text", std::vector<uint32_t>(101, 1), 2);
  EXPECT_EQ(*NumValidationWindows(data, 10, 1000), 10);
  EXPECT_EQ(*NumValidationWindows(data, 10, 7), 7);
  EXPECT_EQ(*NumValidationWindows(data, 100, 1), 1);
  EXPECT_EQ(
      NumValidationWindows(data, 101, 1000).status().message(),
      "--data: text: 101 tokens for validation, expected at least one context of 101 tokens and "
      "the token after it; give more data, a larger --validation-fraction or a smaller --context");
}

}  // namespace
}  // namespace zg::models
