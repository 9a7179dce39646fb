#include "models/gpt/bigram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/random.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

TokenDataset Text(std::string_view text) {
  return TokenDataset::FromTextFiles({WriteTestFile("bigram.txt", text)}).value();
}

TokenDataset Tokens(const std::vector<uint16_t>& tokens, int vocabulary) {
  const std::string_view bytes(reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size());
  return TokenDataset::FromTokenFile(WriteTestFile("bigram.bin", bytes), vocabulary).value();
}

TEST(BigramModel, ProbabilitiesSumToOne) {
  const BigramModel model = BigramModel::Fit(Text("the cat sat on the mat; the end"));
  for (const int previous : {'t', 'h', ' ', 'd', 'z'}) {
    double sum = 0.0;
    for (int next = 0; next < 256; ++next) {
      EXPECT_GT(model.Probability(previous, next), 0.0);
      sum += model.Probability(previous, next);
    }
    EXPECT_NEAR(sum, 1.0, 1e-12) << previous;
  }
}

TEST(BigramModel, KnowsTokensOfMoreThanSixteenBits) {
  const auto tokens = [](std::vector<uint32_t> ids) {
    return TokenDataset::FromTokens("wide", std::move(ids), 70'003).value();
  };
  const BigramModel model = BigramModel::Fit(tokens({70'000, 70'001, 70'000, 70'001, 4464, 4465}));
  const BigramModel same = BigramModel::Fit(tokens({0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(model.Probability(70'000, 70'001), same.Probability(0, 1));
  EXPECT_EQ(model.Probability(70'000, 4465), same.Probability(0, 3));  // 70'001 - 65'536
}

// Pairs of "abacabad": ab 2, ba 2, ac 1, ca 1, ad 1. Vocabulary 256.
TEST(BigramModel, IsInterpolatedKneserNey) {
  const BigramModel model = BigramModel::Fit(Text("abacabad"));
  const double discount = 3.0 / (3.0 + 2.0 * 2.0);
  const double kinds = 5.0 + 0.5 * 256;
  // Three kinds of tokens followed `a`, four times in total; one kind of token came before `b`.
  EXPECT_NEAR(model.Probability('a', 'b'), (2.0 - discount + 3.0 * discount * (1.5 / kinds)) / 4.0,
              1e-15);
  // Two kinds came before `a`, none of them `a`.
  EXPECT_NEAR(model.Probability('a', 'a'), 3.0 * discount * (2.5 / kinds) / 4.0, 1e-15);
  EXPECT_NEAR(model.Probability('a', 'z'), 3.0 * discount * (0.5 / kinds) / 4.0, 1e-15);
  // Nothing followed `d`.
  EXPECT_NEAR(model.Probability('d', 'a'), 2.5 / kinds, 1e-15);
}

TEST(BigramModel, LikelihoodIsTheMeanOverPairs) {
  const BigramModel model = BigramModel::Fit(Text("abacabad"));
  EXPECT_NEAR(model.MeanNegativeLogLikelihood(Text("abz")),
              -(std::log(model.Probability('a', 'b')) + std::log(model.Probability('b', 'z'))) / 2,
              1e-15);
  EXPECT_TRUE(std::isnan(model.MeanNegativeLogLikelihood(Text("a"))));
}

TEST(BigramModel, ApproachesTheEntropyOfAMarkovChain) {
  // Token n is followed by n + 1 or n + 2, modulo 5, with probabilities 3/4 and 1/4.
  std::vector<uint16_t> tokens = {0};
  const RandomKey key{3};
  while (tokens.size() < 200000) {
    const int step = UniformAt(key, tokens.size()) < 0.75f ? 1 : 2;
    tokens.push_back(static_cast<uint16_t>((tokens.back() + step) % 5));
  }
  const TokenSplit split = Tokens(tokens, 5).Split(0.5).value();
  const double entropy = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  EXPECT_NEAR(BigramModel::Fit(split.train).MeanNegativeLogLikelihood(split.validation), entropy,
              0.01);
}

TEST(BigramModel, TheLargestVocabularyIsSparse) {
  std::vector<uint16_t> tokens;
  for (int i = 0; i < 100000; ++i) tokens.push_back(static_cast<uint16_t>(i * 40503u >> 3));
  tokens.push_back(65535);
  tokens.push_back(65535);
  const BigramModel model = BigramModel::Fit(Tokens(tokens, 65536));
  double sum = 0.0;
  for (int next = 0; next < 65536; ++next) sum += model.Probability(65535, next);
  EXPECT_NEAR(sum, 1.0, 1e-9);
}

TEST(BigramModel, RepetitionAloneKeepsAllProbabilitiesPositive) {
  const BigramModel model = BigramModel::Fit(Text(std::string(1000, 'a')));
  EXPECT_GT(model.Probability('a', 'b'), 0.0);
  EXPECT_GT(model.Probability('a', 'a'), 0.99);
  EXPECT_GT(BigramModel::Fit(Text("a")).Probability('a', 'b'), 0.0);
}

}  // namespace
}  // namespace zg
