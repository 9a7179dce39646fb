// Arithmetic of i64: values, and what is an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"

namespace zg {
namespace {

using Integers = std::vector<int64_t>;

TEST(IntegersTest, ArithmeticIsExact) {
  Eager eager;
  const int64_t big = (int64_t{1} << 60) + 1;  // no double has it
  const Tensor a = eager.i64({4}, {7, -7, big, 0});
  const Tensor b = eager.i64({4}, {2, 2, 1, -5});
  EXPECT_EQ(Tensor(a + b).integers(), (Integers{9, -5, big + 1, -5}));
  EXPECT_EQ(Tensor(a - b).integers(), (Integers{5, -9, big - 1, 5}));
  EXPECT_EQ(Tensor(a * b).integers(), (Integers{14, -14, big, 0}));
  EXPECT_EQ(Tensor(maximum(a, b)).integers(), (Integers{7, 2, big, 0}));
  EXPECT_EQ(Tensor(minimum(a, b)).integers(), (Integers{2, -7, 1, -5}));
  EXPECT_EQ(Tensor(3.0 - a).integers(), (Integers{-4, 10, 3 - big, 3}));
  EXPECT_EQ(Tensor(2.0 * a + 1.0).integers(), (Integers{15, -13, 2 * big + 1, 1}));
  EXPECT_EQ(Tensor(-a).integers(), (Integers{-7, 7, -big, 0}));
  EXPECT_EQ(Tensor(abs(a)).integers(), (Integers{7, 7, big, 0}));
  EXPECT_EQ(Tensor(sign(a)).integers(), (Integers{1, -1, 1, 0}));
  EXPECT_EQ(Tensor(square(b)).integers(), (Integers{4, 4, 1, 25}));
  EXPECT_EQ(Tensor(clamp(a, -3, 5)).integers(), (Integers{5, -3, 5, 0}));
  EXPECT_EQ(Tensor(cumsum(b, 0)).integers(), (Integers{2, 4, 5, 0}));
}

// As NumPy and PyTorch: the quotient is rounded towards minus infinity.
TEST(IntegersTest, Division) {
  Eager eager;
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const Tensor a = eager.i64({7}, {-7, -6, -1, 0, 1, 7, lowest});
  EXPECT_EQ(Tensor(floor_divide(a, 3)).integers(), (Integers{-3, -2, -1, 0, 0, 2, lowest / 3 - 1}));
  EXPECT_EQ(Tensor(remainder(a, 3)).integers(), (Integers{2, 0, 2, 0, 1, 1, lowest % 3 + 3}));
  EXPECT_EQ(Tensor(floor_divide(a, 1)).integers(), a.integers());
}

TEST(IntegersTest, Sums) {
  Eager eager;
  const int64_t big = (int64_t{1} << 60) + 1;
  const Tensor x = eager.i64({2, 3}, {1, 2, big, -4, 5, 6});
  EXPECT_EQ(Tensor(sum(x)).integers(), (Integers{10 + big}));
  EXPECT_EQ(Tensor(sum(x, {0})).integers(), (Integers{-3, 7, big + 6}));
  const Tensor kept = sum(x, {-1}, /*keep_dims=*/true);
  EXPECT_EQ(kept.shape(), (Shape{2, 1}));
  EXPECT_EQ(kept.integers(), (Integers{3 + big, 7}));
  const Tensor count = sum(greater(x, 1.0), {1});
  EXPECT_EQ(count.dtype(), DType::kI64);
  EXPECT_EQ(count.integers(), (Integers{2, 2}));
}

TEST(IntegersTest, OverflowWraps) {
  Eager eager;
  const int64_t highest = std::numeric_limits<int64_t>::max();
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const Tensor a = eager.i64({2}, {highest, lowest});
  EXPECT_EQ(Tensor(a + 1.0).integers(), (Integers{lowest, lowest + 1}));
  EXPECT_EQ(Tensor(a - 1.0).integers(), (Integers{highest - 1, highest}));
  EXPECT_EQ(Tensor(-a).integers(), (Integers{-highest, lowest}));
}

TEST(IntegersTest, RowsAreBroadcast) {
  Eager eager;
  const Tensor rows = eager.i64({2, 1}, {0, 100});
  const Tensor columns = eager.i64({3}, {1, 2, 3});
  const Tensor sum = rows + columns;
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_EQ(sum.integers(), (Integers{1, 2, 3, 101, 102, 103}));
}

// The error of a function of %x i64[4] and %y f32[4] in a graph.
std::string Error(const std::function<Var(Var, Var)>& function) {
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return function(in.i64("x", {4}), in.f32("y", {4})); });
  const std::string text = graph.status().message();
  const std::string place = "graph g, eval 'run': ";
  return text.rfind(place, 0) == 0 ? text.substr(place.size()) : text;
}

TEST(IntegersTest, TheWiderDTypeOfBothOperands) {
  Eager eager;
  const Tensor whole = eager.i64({3}, {1, -2, 3}),
               condition = eager.boolean({3}, {true, false, true});
  const Tensor half = to(eager.f32({3}, {0.5, 1.5, -1}), DType::kF16);
  const auto expect = [](Tensor y, DType dtype, const std::vector<float>& values) {
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(Tensor(to(y, DType::kF32)).values(), values);
  };
  expect(condition * half, DType::kF16, {0.5, 0, -1});
  expect(half - condition, DType::kF16, {-0.5, 1.5, -2});
  expect(whole / half, DType::kF16, {2, -1.3330078f, -3});
  expect(maximum(whole, half), DType::kF16, {1, 1.5, 3});
  expect(condition + whole, DType::kI64, {2, -2, 4});
  expect(half * to(half, DType::kBF16), DType::kF32, {0.25, 2.25, 1});
}

TEST(IntegersTest, FullOfANumberBeyondF32) {
  Eager eager;
  EXPECT_EQ(Tensor(full({2}, 16777217, DType::kI64)).integers(), (Integers{16777217, 16777217}));
}

// Close ones, equal ones, and ones that f32 does not tell apart.
Integers Mixed(int64_t count) {
  Integers values;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t base = i % 3 == 0 ? (int64_t{1} << 43) - 9 : i % 3 == 1 ? -(int64_t{1} << 40) : 5;
    values.push_back(base + i * i * 7 % 11 - 4);
  }
  return values;
}

TEST(IntegersTest, AreSorted) {
  Eager eager;
  const Integers values = Mixed(50);
  const Tensor x = eager.i64({50}, values);
  for (const bool descending : {false, true}) {
    Integers order(50);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return descending ? values[a] > values[b] : values[a] < values[b];
    });
    EXPECT_EQ(Tensor(argsort(x, 0, descending)).integers(), order);
    Integers sorted;
    for (const int64_t i : order) sorted.push_back(values[i]);
    EXPECT_EQ(Tensor(sort(x, 0, descending).values).integers(), sorted);
    const TopK some = top_k(x, 7, 0, descending);
    EXPECT_EQ(Tensor(some.values).integers(), Integers(sorted.begin(), sorted.begin() + 7));
    EXPECT_EQ(Tensor(some.indices).integers(), Integers(order.begin(), order.begin() + 7));
    EXPECT_EQ(Tensor(median(x, 0)).integers(), Integers{sorted[descending ? 25 : 24]});
  }
}

TEST(IntegersTest, ExtremesSoFar) {
  Eager eager;
  const Integers values = Mixed(50);
  const Tensor x = eager.i64({50}, values);
  for (const bool largest : {false, true}) {
    Integers expected;
    int64_t best = 0;
    for (int64_t i = 0; i < 50; ++i) {
      if (largest ? values[i] > values[best] : values[i] < values[best]) best = i;
      expected.push_back(best);
    }
    const TopK so_far = largest ? cummax(x, 0) : cummin(x, 0);
    EXPECT_EQ(Tensor(so_far.indices).integers(), expected);
    for (int64_t& i : expected) i = values[i];
    EXPECT_EQ(Tensor(so_far.values).integers(), expected);
  }
}

TEST(IntegersTest, RowsAreSelected) {
  Eager eager;
  const int64_t large = (int64_t{1} << 53) + 1;
  const Tensor x = eager.i64({3, 2}, {0, 1, large, 3, 4, 5});
  const Tensor ids = eager.i64({2}, {1, 0});
  EXPECT_EQ(Tensor(index_select(x, 0, ids)).integers(), (Integers{large, 3, 0, 1}));
  EXPECT_EQ(Tensor(index_select(x > 2.0, 1, ids)).integers(), (Integers{0, 0, 1, 1, 1, 1}));
}

TEST(IntegersTest, Errors) {
  EXPECT_EQ(Error([](Var x, Var) { return x + 0.5; }),
            "shift of %x i64[4]: got 0.5, expected a number that i64 can hold");
  EXPECT_EQ(Error([](Var x, Var) { return x * 1e30; }),
            "scale of %x i64[4]: got 1e+30, expected a number that i64 can hold");
  EXPECT_EQ(Error([](Var x, Var) { return masked_fill(x, x > 0.0, 0.5); }),
            "masked_fill: i64 does not hold the value 0.5: x i64[4], mask bool[4]");
  EXPECT_EQ(Error([](Var, Var) { return full({4}, 2.5, DType::kI64); }),
            "full: got 2.5, expected a number that i64 can hold");
  EXPECT_EQ(Error([](Var x, Var) { return (x > 0.0) * (x > 1.0); }),
            "multiply: a is not floating-point, convert with to(x, dtype): a bool[4], b bool[4]");
  const std::string no_division =
      "divide of %x i64[4]: expected floating-point operands\n  hint: floor_divide(x, n) divides "
      "i64 by a whole number; or convert with to(x, dtype)";
  EXPECT_EQ(Error([](Var x, Var) { return x / x; }), no_division);
  EXPECT_EQ(Error([](Var x, Var) { return x / 2.0; }), no_division);
  EXPECT_EQ(Error([](Var x, Var) { return floor_divide(x, 0); }),
            "floor_divide: value is 0, expected at least 1");
  EXPECT_EQ(Error([](Var, Var y) { return remainder(y, 3); }), "remainder: a is not i64: a f32[4]");
}

}  // namespace
}  // namespace zg
