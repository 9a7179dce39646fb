// The tokens that BERT's demo masks: 15 % of each row, 80/10/10, regardless of the micro-batches.

#include "models/bert/masking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace zg::models {
namespace {

constexpr int64_t kContext = 100;
const Masking kMasking = {.vocabulary = 50, .mask_token = 49};

struct Hidden {
  std::vector<int64_t> tokens;
  std::vector<int64_t> labels;
};

// For rows of tokens 0, 1, ... 48, 0, ..., from row `first` on.
Hidden Hide(uint64_t seed, uint64_t first, int64_t rows, int64_t context = kContext) {
  Hidden hidden;
  for (int64_t i = 0; i < rows * context; ++i) hidden.tokens.push_back(i % context % 49);
  HideTokens(kMasking, RandomKey{seed}, first, context, &hidden.tokens, &hidden.labels);
  return hidden;
}

TEST(Masking, HidesAsManyOfEachRow) {
  constexpr int64_t kRows = 2000;
  const Hidden hidden = Hide(1, 0, kRows);
  int64_t masked = 0, kept = 0, replaced = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    int64_t guesses = 0;
    for (int64_t i = row * kContext; i < (row + 1) * kContext; ++i) {
      const int64_t before = i % kContext % 49;
      if (hidden.labels[i] == -100) {
        ASSERT_EQ(hidden.tokens[i], before);
        continue;
      }
      ++guesses;
      ASSERT_EQ(hidden.labels[i], before);
      ASSERT_LT(hidden.tokens[i], 50);
      if (hidden.tokens[i] == 49) {
        ++masked;
      } else {
        ++(hidden.tokens[i] == before ? kept : replaced);
      }
    }
    ASSERT_EQ(guesses, 15);
  }
  const double all = 15.0 * kRows;
  EXPECT_NEAR(masked / all, 0.8, 0.01);
  EXPECT_NEAR(replaced / all, 0.1 * 48 / 49, 0.01);  // a random token may equal the original one
  EXPECT_NEAR(kept / all, 0.1 + 0.1 / 49, 0.01);
}

// Every position is as likely as any other.
TEST(Masking, HidesEveryPosition) {
  constexpr int64_t kRows = 4000;
  const Hidden hidden = Hide(2, 0, kRows);
  for (int64_t position = 0; position < kContext; ++position) {
    int64_t hits = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      hits += hidden.labels[row * kContext + position] == -100 ? 0 : 1;
    }
    EXPECT_NEAR(static_cast<double>(hits) / kRows, 0.15, 0.03) << position;
  }
}

TEST(Masking, IsAFunctionOfKeyRowAndPosition) {
  const Hidden whole = Hide(3, 12, 6);
  for (int64_t row = 0; row < 6; ++row) {
    const Hidden one = Hide(3, 12 + row, 1);
    for (int64_t i = 0; i < kContext; ++i) {
      ASSERT_EQ(one.tokens[i], whole.tokens[row * kContext + i]);
      ASSERT_EQ(one.labels[i], whole.labels[row * kContext + i]);
    }
  }
  EXPECT_NE(Hide(3, 0, 1).labels, Hide(3, 1, 1).labels);
  EXPECT_NE(Hide(3, 0, 1).labels, Hide(4, 0, 1).labels);
}

TEST(Masking, HidesOneOfAShortRow) {
  for (const int64_t context : {1, 2, 3}) {
    const Hidden hidden = Hide(5, 0, 4, context);
    EXPECT_EQ(std::count(hidden.labels.begin(), hidden.labels.end(), -100), 4 * (context - 1));
  }
}

}  // namespace
}  // namespace zg::models
