#include "framework/kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "tests/kernels/arithmetics.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

struct Sizes {
  int64_t batch, time, heads, head_size;
  bool causal;
  int64_t channels() const { return heads * head_size; }
  ir::Attributes attributes() const { return {{"heads", heads}, {"causal", causal}}; }
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

const std::vector<Sizes>& AllSizes() {
  static const auto& sizes = *new std::vector<Sizes>{
      {1, 1, 1, 1, true},   {1, 5, 1, 3, true},    {2, 16, 2, 16, true},
      {1, 49, 1, 64, true}, {1, 113, 3, 20, true}, {1, 200, 1, 100, true},
      {1, 7, 2, 5, false},  {1, 97, 2, 48, false}, {2, 130, 1, 17, false},
  };
  return sizes;
}

// Forward or backward with operands in the dtype of an arithmetic.
class AttentionTest : public ::testing::TestWithParam<Arithmetic> {
 protected:
  TensorType Of(Shape shape) const { return {GetParam().dtype, std::move(shape)}; }
  TensorType SumsOf(const Sizes& s) const { return F32({s.batch, s.heads, s.time}); }
  KernelRunner Forward(const Sizes& s) const {
    const auto make = [this](const KernelSpec& spec) {
      return MakeAttention(spec, *GetParam().method);
    };
    return {make, {QkvOf(s)}, {OutOf(s), SumsOf(s)}, s.attributes()};
  }
  KernelRunner Backward(const Sizes& s) const {
    const auto make = [this](const KernelSpec& spec) {
      return MakeAttentionGrad(spec, *GetParam().method);
    };
    return {make, {OutOf(s), QkvOf(s), OutOf(s), SumsOf(s)}, {QkvOf(s)}, s.attributes()};
  }
  std::vector<float> Rounded(std::vector<float> values) const {
    RoundFloats(GetParam().dtype, values.data(), static_cast<int64_t>(values.size()));
    return values;
  }
  // Half a unit in the last place of a number next to 1.
  double rounding() const {
    switch (GetParam().dtype) {
      case DType::kBF16:
        return 0x1p-9;
      case DType::kF16:
        return 0x1p-12;
      default:
        return 0.0;
    }
  }

 private:
  TensorType QkvOf(const Sizes& s) const { return Of({s.batch, s.time, 3 * s.channels()}); }
  TensorType OutOf(const Sizes& s) const { return Of({s.batch, s.time, s.channels()}); }
};

INSTANTIATE_TEST_SUITE_P(Arithmetics, AttentionTest, ::testing::ValuesIn(Arithmetics()),
                         [](const auto& info) { return info.param.name; });

TEST_P(AttentionTest, MatchesTheFormula) {
  for (const Sizes& s : AllSizes()) {
    SCOPED_TRACE(::testing::Message()
                 << s.batch << " x " << s.time << ", " << s.heads << " heads of " << s.head_size
                 << (s.causal ? ", causal" : ""));
    const int64_t c = s.channels();
    const std::vector<float> qkv = Rounded(Random(s.batch * s.time * 3 * c, 1, -2.0f, 2.0f));
    const std::vector<float> dout = Rounded(Random(s.batch * s.time * c, 2));
    const Reference want(s, qkv, dout);

    KernelRunner forward = Forward(s);
    forward.SetInput(0, qkv);
    ASSERT_TRUE(forward.Run().ok());
    // Values are below 2; weights and results are rounded.
    ExpectNear(forward.output(0), want.out, 2e-6 + 4 * rounding(), 1e-5);
    ExpectNear(forward.output(1), want.log_sum_exp, 2e-6, 1e-6);

    KernelRunner backward = Backward(s);
    backward.SetInput(0, dout);
    backward.SetInput(1, qkv);
    backward.SetInput(2, forward.output(0));
    backward.SetInput(3, forward.output(1));
    ASSERT_TRUE(backward.Run().ok());
    ExpectNear(backward.output(0), want.dqkv, 1e-5 + 16 * rounding(), 2e-5 + 2 * rounding());
  }
}

// The result of a query does not depend on the keys after it, nor on their number.
TEST_P(AttentionTest, CausalPrefixHasTheSameBits) {
  const Sizes whole{1, 150, 2, 24, true};
  const Sizes prefix{1, 61, 2, 24, true};
  const std::vector<float> qkv = Random(whole.time * 3 * whole.channels(), 3, -2.0f, 2.0f);
  const auto run = [&](const Sizes& s) {
    KernelRunner runner = Forward(s);
    runner.SetInput(0, std::vector<float>(qkv.begin(), qkv.begin() + s.time * 3 * s.channels()));
    EXPECT_TRUE(runner.Run().ok());
    std::vector<float> out = runner.output(0);
    out.resize(prefix.time * prefix.channels());
    return out;
  };
  ExpectSameBits(run(whole), run(prefix));
}

// A query after `seen` - 1 others, of a text in a cache with that many rows or more.
TEST_P(AttentionTest, OneQueryOfACacheHasTheSameBits) {
  constexpr int64_t kSize = 310;
  for (const int64_t head_size : {16, 20, 64, 144}) {
    for (const auto& [heads, key_heads] : {std::pair(2, 2), std::pair(20, 2), std::pair(70, 1)}) {
      const bool has_options = head_size == 20;
      const ir::Attributes attributes = {{"heads", int64_t{heads}},
                                         {"key_heads", int64_t{key_heads}},
                                         {"causal", true},
                                         {"window", int64_t{0}},
                                         {"scale", 0.0},
                                         {"soft_cap", has_options ? 1.5 : 0.0},
                                         {"masked", false},
                                         {"biased", false},
                                         {"has_sinks", has_options}};
      const TensorType q = Of({2, 1, heads * head_size});
      const TensorType cache = Of({2, kSize, key_heads * head_size});
      const auto make_cached = [](const KernelSpec& spec) {
        return MakeCachedAttention(spec, *GetParam().method);
      };
      std::vector<TensorType> inputs = {q, cache, cache};
      if (has_options) inputs.push_back(Of({heads}));
      const auto start_input = static_cast<int>(inputs.size());
      inputs.push_back(I64({2}));
      KernelRunner cached(make_cached, inputs, {q}, attributes);
      const std::vector<float> sinks = Random(heads, 4);
      if (has_options) cached.SetInput(3, sinks);
      const std::vector<float> queries = Random(q.shape.num_elements(), 1, -3.0f, 3.0f);
      const std::vector<float> keys = Random(cache.shape.num_elements(), 2);
      const std::vector<float> values = Random(cache.shape.num_elements(), 3);
      cached.SetInput(0, queries);
      cached.SetInput(1, keys);
      cached.SetInput(2, values);
      for (const int64_t start : {0, 15, 47, 98, 309}) {
        SCOPED_TRACE(::testing::Message() << head_size << ", " << heads << ", " << start);
        cached.SetInput(start_input, std::vector<int64_t>{start, start / 2});
        ASSERT_TRUE(cached.Run().ok());
        for (int64_t b = 0; b < 2; ++b) {
          const int64_t seen = (b == 0 ? start : start / 2) + 1;
          const TensorType row = Of({1, 1, heads * head_size});
          const TensorType rows = Of({1, seen, key_heads * head_size});
          const auto make = [](const KernelSpec& spec) {
            return MakeAttention(spec, *GetParam().method);
          };
          std::vector<TensorType> inputs_of_whole = {row, rows, rows};
          if (has_options) inputs_of_whole.push_back(Of({heads}));
          KernelRunner whole(make, inputs_of_whole, {row, F32({1, heads, 1})}, attributes);
          if (has_options) whole.SetInput(3, sinks);
          const auto part = [&](const std::vector<float>& of, int64_t size,
                                const TensorType& type) {
            const auto begin = of.begin() + b * size;
            return std::vector<float>(begin, begin + type.shape.num_elements());
          };
          const int64_t row_size = row.shape.num_elements();
          const int64_t cache_size = kSize * key_heads * head_size;
          whole.SetInput(0, part(queries, row_size, row));
          whole.SetInput(1, part(keys, cache_size, rows));
          whole.SetInput(2, part(values, cache_size, rows));
          ASSERT_TRUE(whole.Run().ok());
          ExpectSameBits(part(cached.output(0), row_size, row), whole.output(0));
        }
      }
    }
  }
}

}  // namespace
}  // namespace zg::testing
