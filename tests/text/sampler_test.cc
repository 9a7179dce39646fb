#include "framework/text/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace zg {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<double> ProbabilitiesOf(const SamplerOptions& options,
                                    const std::vector<float>& logits) {
  const StatusOr<Sampler> sampler = Sampler::create(options);
  EXPECT_TRUE(sampler.ok());
  const StatusOr<std::vector<double>> probabilities = sampler->probabilities(logits);
  EXPECT_TRUE(probabilities.ok()) << probabilities.status().message();
  return *probabilities;
}

// By the definitions: a token counts for top_k if fewer than k are likelier, and for top_p if the
// likelier ones among those have together less than p of their probability.
std::vector<double> ByDefinition(const SamplerOptions& options, const std::vector<float>& logits) {
  const auto count = static_cast<int64_t>(logits.size());
  std::vector<long double> weights;
  for (const float logit : logits) {
    weights.push_back(std::exp(static_cast<long double>(logit) / options.temperature));
  }
  const auto is_likelier = [&](int64_t a, int64_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  const auto over = [&](const std::set<int64_t>& tokens, int64_t than) {
    long double sum = 0.0;
    for (const int64_t token : tokens) sum += is_likelier(token, than) ? weights[token] : 0.0;
    return sum;
  };
  std::set<int64_t> among_k;
  for (int64_t token = 0; token < count; ++token) {
    int64_t likelier = 0;
    for (int64_t other = 0; other < count; ++other) likelier += is_likelier(other, token);
    if (options.top_k == 0 || likelier < options.top_k) among_k.insert(token);
  }
  long double total = 0.0;
  for (const int64_t token : among_k) total += weights[token];
  std::set<int64_t> kept;
  for (const int64_t token : among_k) {
    if (over(among_k, token) < options.top_p * total) kept.insert(token);
  }
  long double rest = 0.0;
  for (const int64_t token : kept) rest += weights[token];
  std::vector<double> probabilities(count);
  for (const int64_t token : kept) {
    probabilities[token] = static_cast<double>(weights[token] / rest);
  }
  return probabilities;
}

TEST(Sampler, HasTheProbabilitiesOfTheDefinitions) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-4, 4);
  for (int trial = 0; trial < 200; ++trial) {
    SamplerOptions options;
    options.temperature = 0.2 + 0.01 * trial;
    options.top_k = trial % 3 == 0 ? 0 : 1 + trial % 11;
    options.top_p = trial % 4 == 0 ? 1.0 : 0.05 + 0.0047 * trial;
    std::vector<float> logits(1 + trial % 9);
    for (float& logit : logits) logit = uniform(random);
    if (logits.size() > 5) logits[5] = logits[2];  // equally likely ones
    const std::vector<double> expected = ByDefinition(options, logits);
    const std::vector<double> got = ProbabilitiesOf(options, logits);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], 1e-12) << "trial " << trial << ", token " << i;
    }
  }
}

TEST(Sampler, TakesTheLikeliestTokenAtTemperatureZero) {
  EXPECT_EQ(ProbabilitiesOf({.temperature = 0.0}, {1, 3, 3, -kInfinity}),
            (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(ProbabilitiesOf({.top_k = 1}, {1, 3, 3}), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(ProbabilitiesOf({.top_p = 1e-9}, {1, 3, 3}), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(ProbabilitiesOf({.min_p = 1.0}, {1, 3, 3}), (std::vector<double>{0, 0.5, 0.5}));
  // 4, 2 and 1 times a weight.
  const float half = -0.6931472f;
  const std::vector<float> falling = {0.0f, half, 2 * half};
  EXPECT_EQ(ProbabilitiesOf({.min_p = 0.26}, falling)[2], 0.0);
  EXPECT_NEAR(ProbabilitiesOf({.min_p = 0.26}, falling)[1], 1.0 / 3.0, 1e-6);
  EXPECT_NEAR(ProbabilitiesOf({.min_p = 0.24}, falling)[2], 1.0 / 7.0, 1e-6);
  EXPECT_EQ(ProbabilitiesOf({.temperature = 2.0, .min_p = 0.51}, falling)[2], 0.0);
}

TEST(Sampler, TakesLogitsOfAnySize) {
  EXPECT_EQ(ProbabilitiesOf({}, {1e30f, -1e30f}), (std::vector<double>{1, 0}));
  EXPECT_EQ(ProbabilitiesOf({}, {-kInfinity, -3e38f}), (std::vector<double>{0, 1}));
  EXPECT_EQ(ProbabilitiesOf({.temperature = 1e-30}, {1, 2}), (std::vector<double>{0, 1}));
}

TEST(Sampler, DrawsWithTheseProbabilitiesTheSameEveryTime) {
  const SamplerOptions options = {.temperature = 0.9, .top_k = 5, .top_p = 0.97, .seed = 11};
  const std::vector<float> logits = {0.5f, 2.0f, -1.0f, 1.0f, 0.0f, -3.0f, 1.5f};
  const StatusOr<Sampler> sampler = Sampler::create(options);
  const std::vector<double> expected = ByDefinition(options, logits);
  constexpr int kDraws = 40000;
  std::vector<double> counts(logits.size());
  for (uint64_t number = 0; number < kDraws; ++number) {
    const StatusOr<int64_t> token = sampler->draw(logits, number);
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(*token, *Sampler::create(options)->draw(logits, number));
    ++counts.at(*token);
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    const double deviation = std::sqrt(expected[i] * (1 - expected[i]) / kDraws);
    EXPECT_NEAR(counts[i] / kDraws, expected[i], 4.5 * deviation) << "token " << i;
  }
}

std::string CreateError(const SamplerOptions& options) {
  const StatusOr<Sampler> sampler = Sampler::create(options);
  return sampler.ok() ? "no error" : sampler.status().message();
}

TEST(Sampler, SaysWhatIsWrong) {
  const std::string temperature = ", expected a number >= 0; 0 always takes the likeliest token";
  const std::string top_p = ", expected 0 < top_p <= 1; 1 takes all tokens";
  EXPECT_EQ(CreateError({.temperature = -0.1}), "sampler: temperature is -0.1" + temperature);
  EXPECT_EQ(CreateError({.temperature = NAN}), "sampler: temperature is nan" + temperature);
  EXPECT_EQ(CreateError({.temperature = INFINITY}), "sampler: temperature is inf" + temperature);
  EXPECT_EQ(CreateError({.top_k = -1}), "sampler: top_k is -1, expected >= 0; 0 takes all tokens");
  EXPECT_EQ(CreateError({.top_p = 0.0}), "sampler: top_p is 0" + top_p);
  EXPECT_EQ(CreateError({.top_p = 1.01}), "sampler: top_p is 1.01" + top_p);
  EXPECT_EQ(CreateError({.top_p = NAN}), "sampler: top_p is nan" + top_p);
  const std::string min_p = ", expected 0 <= min_p <= 1; 0 takes all tokens";
  EXPECT_EQ(CreateError({.min_p = -0.1}), "sampler: min_p is -0.1" + min_p);
  EXPECT_EQ(CreateError({.min_p = NAN}), "sampler: min_p is nan" + min_p);
  const StatusOr<Sampler> sampler = Sampler::create({});
  EXPECT_EQ(sampler->draw({1.0f, NAN}, 0).status().message(),
            "sampler: the logit of token 1 is nan, expected a number");
  EXPECT_EQ(sampler->draw({kInfinity}, 0).status().message(),
            "sampler: the logit of token 0 is inf, expected a number");
  EXPECT_EQ(sampler->draw({-kInfinity, -kInfinity}, 0).status().message(),
            "sampler: got 2 logits, none above -infinity, expected at least one");
  EXPECT_EQ(sampler->draw({}, 0).status().message(),
            "sampler: got 0 logits, none above -infinity, expected at least one");
}

}  // namespace
}  // namespace zg
