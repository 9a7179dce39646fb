#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

struct Sizes {
  int64_t batch, time, heads, head_size;
  bool causal;
  int64_t channels() const { return heads * head_size; }
  Attributes attributes() const { return {{"heads", heads}, {"causal", causal}}; }
};

// The formulas of attention and its gradient in f64, with whole score matrices.
struct Reference {
  std::vector<double> out, log_sum_exp, dqkv;

  Reference(const Sizes& s, const std::vector<float>& qkv, const std::vector<float>& dout) {
    const int64_t c = s.channels();
    const double scale = 1.0 / std::sqrt(static_cast<double>(s.head_size));
    out.assign(s.batch * s.time * c, 0.0);
    log_sum_exp.assign(s.batch * s.heads * s.time, 0.0);
    dqkv.assign(qkv.size(), 0.0);
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t h = 0; h < s.heads; ++h) {
        const auto at = [&](int64_t t, int64_t part, int64_t d) {
          return (b * s.time + t) * 3 * c + part * c + h * s.head_size + d;
        };
        const auto out_at = [&](int64_t t, int64_t d) {
          return (b * s.time + t) * c + h * s.head_size + d;
        };
        for (int64_t q = 0; q < s.time; ++q) {
          const int64_t keys = s.causal ? q + 1 : s.time;
          std::vector<double> weights(keys);
          double sum = 0.0;
          for (int64_t k = 0; k < keys; ++k) {
            double dot = 0.0;
            for (int64_t d = 0; d < s.head_size; ++d) {
              dot += static_cast<double>(qkv[at(q, 0, d)]) * qkv[at(k, 1, d)];
            }
            weights[k] = std::exp(dot * scale);
            sum += weights[k];
          }
          log_sum_exp[(b * s.heads + h) * s.time + q] = std::log(sum);
          double dot_sum = 0.0;
          std::vector<double> dweights(keys);
          for (int64_t k = 0; k < keys; ++k) {
            weights[k] /= sum;
            for (int64_t d = 0; d < s.head_size; ++d) {
              out[out_at(q, d)] += weights[k] * qkv[at(k, 2, d)];
              dweights[k] += static_cast<double>(dout[out_at(q, d)]) * qkv[at(k, 2, d)];
            }
            dot_sum += weights[k] * dweights[k];
          }
          for (int64_t k = 0; k < keys; ++k) {
            const double dscore = weights[k] * (dweights[k] - dot_sum) * scale;
            for (int64_t d = 0; d < s.head_size; ++d) {
              dqkv[at(q, 0, d)] += dscore * qkv[at(k, 1, d)];
              dqkv[at(k, 1, d)] += dscore * qkv[at(q, 0, d)];
              dqkv[at(k, 2, d)] += weights[k] * dout[out_at(q, d)];
            }
          }
        }
      }
    }
  }
};

class AttentionTest : public ::testing::TestWithParam<Sizes> {};

TEST_P(AttentionTest, MatchesTheFormula) {
  const Sizes s = GetParam();
  const int64_t c = s.channels();
  const std::vector<float> qkv = Random(s.batch * s.time * 3 * c, 1, -2.0f, 2.0f);
  const std::vector<float> dout = Random(s.batch * s.time * c, 2);
  const Reference want(s, qkv, dout);
  const TensorType qkv_type = F32({s.batch, s.time, 3 * c});
  const TensorType out_type = F32({s.batch, s.time, c});
  const TensorType sum_type = F32({s.batch, s.heads, s.time});

  KernelRunner forward("attention", {qkv_type}, {out_type, sum_type}, s.attributes());
  forward.SetInput(0, qkv);
  ASSERT_TRUE(forward.Run().ok());
  ExpectNear(forward.output(0), want.out, 2e-6, 1e-5);
  ExpectNear(forward.output(1), want.log_sum_exp, 2e-6, 1e-6);

  KernelRunner backward("attention_grad", {out_type, qkv_type, out_type, sum_type}, {qkv_type},
                        s.attributes());
  backward.SetInput(0, dout);
  backward.SetInput(1, qkv);
  backward.SetInput(2, forward.output(0));
  backward.SetInput(3, forward.output(1));
  ASSERT_TRUE(backward.Run().ok());
  ExpectNear(backward.output(0), want.dqkv, 1e-5, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Sizes, AttentionTest,
                         ::testing::Values(Sizes{1, 1, 1, 1, true}, Sizes{1, 5, 1, 3, true},
                                           Sizes{2, 16, 2, 16, true}, Sizes{1, 49, 1, 64, true},
                                           Sizes{1, 113, 3, 20, true}, Sizes{1, 200, 1, 100, true},
                                           Sizes{1, 7, 2, 5, false}, Sizes{1, 97, 2, 48, false},
                                           Sizes{2, 130, 1, 17, false}));

// What a query gets does not depend on the keys behind it, nor on how many there are.
TEST(Attention, CausalPrefixHasTheSameBits) {
  const int64_t heads = 2, head_size = 24, c = heads * head_size;
  const Attributes attributes = {{"heads", heads}, {"causal", true}};
  const std::vector<float> qkv = Random(150 * 3 * c, 3, -2.0f, 2.0f);
  std::vector<std::vector<float>> outs;
  for (const int64_t time : {150, 61}) {
    KernelRunner runner("attention", {F32({1, time, 3 * c})},
                        {F32({1, time, c}), F32({1, heads, time})}, attributes);
    runner.SetInput(0, std::vector<float>(qkv.begin(), qkv.begin() + time * 3 * c));
    ASSERT_TRUE(runner.Run().ok());
    outs.push_back(runner.output(0));
    outs.back().resize(61 * c);
  }
  ExpectSameBits(outs[0], outs[1]);
}

}  // namespace
}  // namespace zg::testing
