#include "framework/comm/left_fold.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "framework/tensor/half.h"

namespace zg {
namespace {

using Buffers = std::vector<std::vector<float>>;

Buffers RandomInputs(int num_inputs, int64_t elements) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-20, 20);
  Buffers inputs(num_inputs, std::vector<float>(elements));
  for (auto& input : inputs) {
    for (float& value : input) value = std::ldexp(normal(random), exponent(random));
  }
  return inputs;
}

std::vector<float> Expected(const Buffers& inputs) {
  std::vector<float> sums = inputs[0];
  for (size_t k = 1; k < inputs.size(); ++k) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] + inputs[k][i];
  }
  return sums;
}

std::vector<const void*> Pointers(const Buffers& inputs) {
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  return pointers;
}

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  if (got.empty()) return;
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
}

// Every instruction set that this processor has.
class LeftFoldTest : public testing::TestWithParam<int64_t> {
 protected:
  LeftFoldTest() { hwy::SetSupportedTargetsForTest(GetParam()); }
  ~LeftFoldTest() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(LeftFoldTest, AddsInOrder) {
  for (int num_inputs : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33}) {
    for (int64_t elements : {0, 1, 3, 16, 31, 1000, 2048, 4097}) {
      SCOPED_TRACE(testing::Message() << num_inputs << " inputs of " << elements);
      const Buffers inputs = RandomInputs(num_inputs, elements);
      std::vector<float> output(elements, -1);
      LeftFold(DType::kF32, false, Pointers(inputs).data(), num_inputs, elements, output.data());
      ExpectSameBits(output, Expected(inputs));
    }
  }
}

TEST_P(LeftFoldTest, OutputMayBeAnyOfTheInputs) {
  for (int num_inputs : {1, 2, 4, 9, 20}) {
    for (int own = 0; own < num_inputs; ++own) {
      SCOPED_TRACE(testing::Message() << "input " << own << " of " << num_inputs);
      Buffers inputs = RandomInputs(num_inputs, 4097);
      const std::vector<float> expected = Expected(inputs);
      LeftFold(DType::kF32, false, Pointers(inputs).data(), num_inputs, 4097, inputs[own].data());
      ExpectSameBits(inputs[own], expected);
    }
  }
}

TEST_P(LeftFoldTest, AddsWholeNumbers) {
  for (int num_inputs : {1, 2, 8, 9, 33}) {
    for (int64_t elements : {0, 1, 21, 1000, 2049}) {
      SCOPED_TRACE(testing::Message() << num_inputs << " inputs of " << elements);
      std::vector<std::vector<int64_t>> inputs(num_inputs, std::vector<int64_t>(elements));
      std::vector<int64_t> expected(elements);
      std::vector<const void*> pointers;
      std::mt19937_64 random(17);
      for (auto& input : inputs) {
        for (int64_t i = 0; i < elements; ++i) {
          input[i] = static_cast<int64_t>(random()) >> 8;
          expected[i] += input[i];
        }
        pointers.push_back(input.data());
      }
      LeftFold(DType::kI64, false, pointers.data(), num_inputs, elements, inputs[0].data());
      EXPECT_EQ(inputs[0], expected);
    }
  }
}

// For 16-bit terms: the result of one addition after the other in f32, rounded at the end if the
// sum is in 16 bits. With `continues` the first input is in f32.
template <typename Term, typename Sum>
void TestHalves(ReductionTypes types) {
  for (const bool continues : {false, true}) {
    for (const int num_inputs : {1, 2, 3, 8, 9, 33}) {
      for (const int64_t elements : {0, 1, 3, 31, 2048, 2049, 4097}) {
        SCOPED_TRACE(testing::Message() << num_inputs << " inputs of " << elements
                                        << (continues ? ", continues" : ""));
        const Buffers numbers = RandomInputs(num_inputs, elements);
        std::vector<float> start(elements);
        std::vector<std::vector<Term>> terms(num_inputs, std::vector<Term>(elements));
        std::vector<Sum> expected(elements);
        for (int64_t i = 0; i < elements; ++i) {
          float sum = 0;
          for (int k = 0; k < num_inputs; ++k) {
            const float number = numbers[k][i] * 0x1p-8f;  // the maximum of f16 is smaller
            terms[k][i] = FromF32<Term>(number);
            start[i] = k == 0 ? number : start[i];
            const float term = continues && k == 0 ? start[i] : ToF32(terms[k][i]);
            sum = k == 0 ? term : sum + term;
          }
          expected[i] = FromF32<Sum>(sum);
        }
        std::vector<const void*> pointers;
        for (const std::vector<Term>& term : terms) pointers.push_back(term.data());
        if (continues) pointers[0] = start.data();
        const auto expect_same_bits = [&](const void* got) {
          EXPECT_TRUE(elements == 0 ||
                      std::memcmp(got, expected.data(), elements * sizeof(Sum)) == 0);
        };
        std::vector<Sum> output(elements);
        LeftFold(types, continues, pointers.data(), num_inputs, elements, output.data());
        expect_same_bits(output.data());
        // In place, in an input of the sum's type.
        void* own = nullptr;
        if (continues && std::is_same_v<Sum, float>) own = start.data();
        if (!continues && std::is_same_v<Term, Sum>) own = terms.back().data();
        if (own == nullptr) continue;
        LeftFold(types, continues, pointers.data(), num_inputs, elements, own);
        expect_same_bits(own);
      }
    }
  }
}

TEST_P(LeftFoldTest, AddsUpHalvesInF32) {
  TestHalves<BFloat16, float>({DType::kBF16, DType::kF32});
  TestHalves<Float16, float>({DType::kF16, DType::kF32});
}

TEST_P(LeftFoldTest, RoundsASumInHalvesOnce) {
  TestHalves<BFloat16, BFloat16>(DType::kBF16);
  TestHalves<Float16, Float16>(DType::kF16);
}

INSTANTIATE_TEST_SUITE_P(Targets, LeftFoldTest,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<int64_t>& info) {
                           return std::string(hwy::TargetName(info.param));
                         });

}  // namespace
}  // namespace zg
