// Functions of matrices, those that write at positions, and constants: their result types, their errors,
// and what equal elements, NaN and singular matrices give.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"
#include "tests/nn/result_type.h"

namespace zg {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Var Square(Var x) { return slice(x, 2, 0, 3); }  // f32[2,3,3]

TEST(MatrixFunctions, Systems) {
  EXPECT_EQ(Of([](Var x) { return solve(Square(x), x); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return solve(Square(x), select(select(x, 0, 0), 1, 0)); }), "f32[2,3]");
  EXPECT_EQ(Of([](Var x) { return solve(eye(3), x); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return solve_triangular(Square(x), select(x, 0, 0), true); }),
            "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return cholesky_solve(x, cholesky(Square(x))); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return solve(x, x); }),
            Error("solve: a is not square matrices: a f32[2,3,4], b f32[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return solve(Square(x), transpose(x, 1, 2)); }),
            Error("solve: b is not as many matrices of as many rows: a f32[2,3,3], b f32[2,4,3]"));
  EXPECT_EQ(Of([](Var x) {
              return solve(Square(x), concat({x, x, x}, 0));
            }),
            Error("solve of %slice f32[2,3,3]: its leading dims and those of [6,3,4] cannot be "
                  "broadcast to one"));
  EXPECT_EQ(Of([](Var x) { return solve(flatten(x), x); }),
            Error("solve of %reshape f32[24]: expected matrices of at least two dims"));
}

TEST(MatrixFunctions, Others) {
  EXPECT_EQ(Of([](Var x) { return inverse(Square(x)); }), "f32[2,3,3]");
  EXPECT_EQ(Of([](Var x) { return det(Square(x)); }), "f32[2]");
  EXPECT_EQ(Of([](Var x) { return logdet(Square(x)); }), "f32[2]");
  EXPECT_EQ(Of([](Var x) { return matrix_power(Square(x), 0); }), "f32[2,3,3]");
  EXPECT_EQ(Of([](Var x) { return trace(x); }), "f32[2]");
  EXPECT_EQ(Of([](Var x) { return cross(x, ones({3, 1}), 1); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return kron(select(x, 0, 0), select(x, 0, 1)); }), "f32[9,16]");
  EXPECT_EQ(Of([](Var x) { return cholesky(x); }),
            Error("cholesky of %x f32[2,3,4]: expected square matrices"));
  EXPECT_EQ(Of([](Var x) { return matrix_power(x, 2); }),
            Error("matrix_power of %x f32[2,3,4]: expected square matrices"));
  EXPECT_EQ(
      Of([](Var x) { return cross(x, x); }),
      Error("cross of %x f32[2,3,4]: got another operand of shape [2,3,4], expected 3 elements "
            "along dim -1"));
  EXPECT_EQ(Of([](Var x) { return kron(x, x); }),
            Error("kron of %x f32[2,3,4]: got another operand of shape [2,3,4], expected two "
                  "matrices"));
}

TEST(MatrixFunctions, Scattered) {
  const auto places = [](const Dims& shape) { return full(shape, 1.0, DType::kI64); };
  EXPECT_EQ(Of([&](Var x) { return scatter(x, 1, places({1, 2, 3}), x); }), "f32[2,3,4]");
  EXPECT_EQ(Of([&](Var x) { return scatter(x, 1, places({2, 7, 4}), 0.5); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return index_copy(x, 2, arange(2), slice(x, 2, 0, 2)); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return index_fill(x, -1, arange(2), 3.0); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return segment_softmax(x, arange(2), 5); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return bincount(to(x, DType::kI64), 7); }), "f32[7]");
  EXPECT_EQ(Of([](Var x) { return histc(x, 6, 0.0, 1.0); }), "f32[6]");
  EXPECT_EQ(
      Of([&](Var x) {
        return scatter(x, 1, places({2, 7, 4}), x);
      }),
      Error("scatter of %x f32[2,3,4]: got an index i64[2,7,4] and a source f32[2,3,4], "
            "expected as many dims as x's, and an index of at most the source's size in each, "
            "and, but for dim 1, of at most x's"));
  EXPECT_EQ(Of([](Var x) { return scatter(x, 1, x, x); }),
            Error("scatter: scatter_last: index is not i64: index f32[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return index_fill(x, 1, x, 0.0); }),
            Error("index_fill of %x f32[2,3,4]: got the index %x f32[2,3,4], expected a vector"));
  EXPECT_EQ(Of([](Var x) { return segment_softmax(x, arange(3), 5); }),
            Error("segment_softmax of %x f32[2,3,4]: got 3 ids and the count 5, expected an id for "
                  "each element of dim 0, and a count of at least 1"));
  EXPECT_EQ(Of([](Var x) { return histc(x, 6, 1.0, 1.0); }),
            Error("histc of %x f32[2,3,4]: got 6 bins of [1, 1], expected at least one, and low < "
                  "high"));
}

TEST(MatrixFunctions, Constants) {
  EXPECT_EQ(Of([](Var) { return constant({2, 1}, Floats{0.5f, 2.0f}); }), "f32[2,1]");
  EXPECT_EQ(Of([](Var x) { return index_select(x, 2, constant({2}, Ints{3, 0})); }), "f32[2,3,2]");
  EXPECT_EQ(Of([](Var) { return constant({3}, Floats{1.0f}); }),
            Error("constant: literal: got 1 numbers for f32[3], expected one per element"));
}

TEST(MatrixFunctions, ReduceOneDimOrSeveral) {
  EXPECT_EQ(Of([](Var x) { return sum(x, 1); }), "f32[2,4]");
  EXPECT_EQ(Of([](Var x) { return max(x, -1, /*keep_dims=*/true); }), "f32[2,3,1]");
  EXPECT_EQ(Of([](Var x) { return mean(x, {}); }), "f32[]");
  EXPECT_EQ(Of([](Var x) { return logsumexp(x, {0, 2}); }), "f32[3]");
}

TEST(MatrixFunctions, ElementsThatMeet) {
  Eager eager;
  const Tensor x = eager.f32({3}, {5, 6, 7});
  const Tensor index = eager.i64({4}, {2, 0, 2, 2});
  const Tensor source = eager.f32({4}, {9, 1, 8, 9});
  source.require_grad();
  EXPECT_EQ(Tensor(scatter(x, 0, index, source)).values(), (Floats{1, 6, 9}));  // the last one
  Tensor(sum(scatter(x, 0, index, source))).backward();
  EXPECT_EQ(source.grad().values(), (Floats{0, 1, 0, 1}));
  eager.zero_grad();
  Tensor(sum(scatter_reduce(x, 0, index, source, ScatterReduce::kAmax))).backward();
  EXPECT_EQ(source.grad().values(), (Floats{1, 0, 0, 0}));  // the first of the largest
  const Tensor holes = eager.f32({4}, {9, 1, NAN, 9});
  EXPECT_TRUE(
      std::isnan(Tensor(scatter_reduce(x, 0, index, holes, ScatterReduce::kAmax)).values()[2]));
  EXPECT_EQ(Tensor(searchsorted(x, eager.f32({4}, {NAN, 6, 0, 8}))).integers(), (Ints{3, 1, 0, 3}));
}

TEST(MatrixFunctions, SingularMatrices) {
  Eager eager;
  const Tensor singular = eager.f32({2, 2}, {1, 2, 2, 4});
  const Slogdet found = slogdet(singular);
  EXPECT_EQ(Tensor(found.sign).item(), 0.0f);
  EXPECT_EQ(Tensor(found.logabsdet).item(), -INFINITY);
  EXPECT_EQ(Tensor(det(singular)).item(), 0.0f);
  EXPECT_TRUE(std::isnan(Tensor(logdet(eager.f32({2, 2}, {0, 1, 1, 0}))).item()));
  const auto dies = [](Var (*function)(Var), const Floats& values, const std::string& message) {
    EXPECT_EXIT(
        {
          Eager own;
          function(own.f32({2, 2, 2}, values));
        },
        ::testing::ExitedWithCode(1), message);
  };
  dies(inverse, {1, 0, 0, 1, 1, 2, 2, 4}, "error: inverse: matrix 1 of the 2 is singular");
  dies(cholesky, {1, 2, 2, 1, 1, 0, 0, 1},
       "error: cholesky: matrix 0 of the 2 is not positive definite");
}

TEST(MatrixFunctions, BatchNormWithoutParameters) {
  Eager eager({.training = true});
  nn::BatchNormOptions options;
  options.affine = false;
  nn::BatchNorm1d plain(nullptr, "plain", 2, options), scaled(nullptr, "scaled", 2);
  const Tensor x = eager.f32({3, 2}, {1, 2, 3, 5, -1, 0.5f});
  EXPECT_EQ(Tensor(plain(x)).values(), Tensor(scaled(x)).values());
}

TEST(MatrixFunctions, ParametersHaveOperators) {
  Eager eager;
  const nn::Linear linear(nullptr, "linear", 2, 1);
  const Tensor twice = 2.0 * linear.weight, sum = linear.weight + linear.weight;
  EXPECT_EQ(twice.values(), sum.values());
  EXPECT_EQ(Tensor(-(linear.weight * linear.weight) / 2.0 - 1.0).shape().ToString(), "[1,2]");
  EXPECT_EQ(Tensor(linear.weight > 100.0).integers(), (Ints{0, 0}));
}

}  // namespace
}  // namespace zg
