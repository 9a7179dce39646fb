#include "framework/comm/fold.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace zg {
namespace {

std::vector<float> Random(int64_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> Sum(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// Neighbours, then sums of neighbours, and so on; one without a neighbour waits.
std::vector<float> Pairwise(std::vector<std::vector<float>> terms) {
  while (terms.size() > 1) {
    std::vector<std::vector<float>> sums;
    for (size_t i = 0; i + 1 < terms.size(); i += 2) sums.push_back(Sum(terms[i], terms[i + 1]));
    if (terms.size() % 2 == 1) sums.push_back(terms.back());
    terms = std::move(sums);
  }
  return terms[0];
}

TEST(Fold, AddsPairwiseOrInOrder) {
  for (int num_terms = 1; num_terms <= 17; ++num_terms) {
    for (const int64_t elements : {int64_t{0}, int64_t{1}, int64_t{2048}, int64_t{5000}}) {
      SCOPED_TRACE(::testing::Message() << num_terms << " terms of " << elements);
      std::vector<std::vector<float>> terms;
      for (int i = 0; i < num_terms; ++i) terms.push_back(Random(elements, i + 1));
      const auto fold = [&](FoldOrder order, float* output, std::vector<std::vector<float>>& of) {
        std::vector<const void*> pointers;
        for (const std::vector<float>& term : of) pointers.push_back(term.data());
        Fold({DType::kF32, DType::kF32, order}, false, pointers.data(), num_terms, elements,
             output);
      };
      std::vector<float> got(elements, -1);
      fold(FoldOrder::kPairwise, got.data(), terms);
      EXPECT_EQ(got, Pairwise(terms));
      std::vector<std::vector<float>> in_place = terms;
      fold(FoldOrder::kPairwise, in_place.back().data(), in_place);
      EXPECT_EQ(in_place.back(), got);
      fold(FoldOrder::kLeft, got.data(), terms);
      std::vector<float> left = terms[0];
      for (int i = 1; i < num_terms; ++i) left = Sum(left, terms[i]);
      EXPECT_EQ(got, left);
    }
  }
}

}  // namespace
}  // namespace zg
