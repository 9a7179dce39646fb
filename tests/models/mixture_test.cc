// The mixture of experts in models/llama: the loss that keeps its experts in use. Its results are compared
// with transformers' by reference_models_test.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "framework/eager/eager.h"
#include "models/llama/model.h"

namespace zg::models {
namespace {

constexpr int64_t kTokens = 6;
constexpr int64_t kChannels = 4;
constexpr int64_t kExperts = 3;
constexpr int64_t kPerToken = 2;

// Shares of the choices times mean probabilities, from the router's logits.
double BalanceOf(const std::vector<float>& logits) {
  std::vector<double> chosen(kExperts, 0.0), probability(kExperts, 0.0);
  for (int64_t token = 0; token < kTokens; ++token) {
    const float* const own = logits.data() + token * kExperts;
    double sum = 0.0;
    for (int64_t e = 0; e < kExperts; ++e) sum += std::exp(own[e]);
    std::vector<int64_t> order(kExperts);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return own[a] > own[b]; });
    for (int64_t k = 0; k < kPerToken; ++k) chosen[order[k]] += 1.0 / (kTokens * kPerToken);
    for (int64_t e = 0; e < kExperts; ++e) probability[e] += std::exp(own[e]) / sum / kTokens;
  }
  return kExperts * std::inner_product(chosen.begin(), chosen.end(), probability.begin(), 0.0);
}

TEST(Mixture, BalanceLossIsThatOfItsChoices) {
  Eager eager;
  MixtureOfExperts mixture(nullptr, "mixture", {kExperts, kPerToken}, kChannels, 5,
                           Initializer::Normal(1.0));
  std::vector<float> values(kTokens * kChannels);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 11) / 5.0f - 1;
  const Tensor x = eager.f32({2, kTokens / 2, kChannels}, values);
  const Tensor y = mixture(x);
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_NEAR(Tensor(mixture.balance_loss()).item(), BalanceOf(Tensor(mixture.gate(x)).values()),
              1e-6);
}

TEST(Mixture, BalanceLossOfEqualProbabilitiesIsOne) {
  Eager eager;
  MixtureOfExperts mixture(nullptr, "mixture", {kExperts, kPerToken}, kChannels, 5,
                           Initializer::Zeros());
  const Tensor y = mixture(eager.f32({1, 1, kChannels}, {1, 2, 3, 4}));
  EXPECT_FLOAT_EQ(Tensor(mixture.balance_loss()).item(), 1.0f);
}

}  // namespace
}  // namespace zg::models
