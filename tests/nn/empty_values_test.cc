// Values without elements, and options that are larger than any tensor: results and gradients are
// those of PyTorch, or errors.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"

namespace zg {
namespace {

using Floats = std::vector<float>;
using Function = std::function<Var(Eager& eager, Var x)>;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// The shape of the result for an x without elements, which has a gradient.
std::string ShapeOf(const Shape& shape, const Function& function) {
  Eager eager;
  const Tensor x = eager.f32(shape, {});
  x.require_grad();
  const Tensor y = function(eager, x);
  Tensor(sum(y)).backward();
  EXPECT_EQ(x.grad().shape(), shape);
  return y.shape().ToString();
}

TEST(EmptyValues, Products) {
  const auto times = [](const Dims& shape) {
    return [=](Eager&, Var x) { return matmul(x, ones(shape)); };
  };
  EXPECT_EQ(ShapeOf({0, 64}, times({64, 64})), "[0,64]");
  EXPECT_EQ(ShapeOf({5, 0, 6}, times({6, 18})), "[5,0,18]");
  EXPECT_EQ(ShapeOf({0, 70}, [](Eager&, Var x) { return linear(x, ones({65, 70})); }), "[0,65]");
  EXPECT_EQ(ShapeOf({0, 4, 6},
                    [](Eager&, Var x) {
                      nn::LSTM lstm(nullptr, "lstm", 6, 5);
                      return lstm(x);
                    }),
            "[0,4,5]");
  Eager eager;
  const Tensor weight = eager.f32({70, 3}, Floats(210, 1.0f));
  weight.require_grad();
  Tensor(sum(matmul(eager.f32({0, 70}, {}), weight))).backward();
  EXPECT_EQ(weight.grad().values(), Floats(210));
}

TEST(EmptyValues, Shapes) {
  const auto in = [](const Dims& dims) { return [=](Eager&, Var x) { return reshape(x, dims); }; };
  EXPECT_EQ(ShapeOf({0, 6}, in({0, 2, 3})), "[0,2,3]");
  EXPECT_EQ(ShapeOf({4, 0, 6}, in({4, -1, 3})), "[4,0,3]");
  EXPECT_EQ(ShapeOf({2, 0}, in({5, 0, 7})), "[5,0,7]");
  EXPECT_EQ(ShapeOf({0}, in({3, 0, 0})), "[3,0,0]");
  EXPECT_EQ(
      ShapeOf({0, 7}, [](Eager& eager, Var x) { return index_select(x, 0, eager.i64({0}, {})); }),
      "[0,7]");
  EXPECT_EQ(ShapeOf({4, 0, 4}, [](Eager&, Var x) { return unbind(x, -1)[3]; }), "[4,0]");
  Eager eager;
  const Tensor x = eager.f32({4, 3, 2}, Floats(24, 1.0f));
  EXPECT_EQ(Tensor(index_select(x, 0, eager.i64({0}, {}))).shape(), (Shape{0, 3, 2}));
}

TEST(EmptyValues, ConvolutionsOfNoSamples) {
  EXPECT_EQ(ShapeOf({0, 2, 8},
                    [](Eager&, Var x) {
                      return conv_transpose1d(x, ones({2, 3, 1}));
                    }),
            "[0,3,8]");
  EXPECT_EQ(ShapeOf({0, 2, 4, 5, 6},
                    [](Eager&, Var x) {
                      return conv3d(x, ones({3, 2, 2, 2, 2}));
                    }),
            "[0,3,3,4,5]");
  EXPECT_EQ(ShapeOf({0, 8, 4, 6, 4},
                    [](Eager&, Var x) {
                      return max_pool3d(x, {2, 2, 2});
                    }),
            "[0,8,2,3,2]");
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t groups : {1, 8}) {  // all channels together, and each of its own
      Eager eager;
      const Shape shape = {8, 8 / groups, 3, 3};
      const Tensor weight = eager.f32(shape, Floats(shape.num_elements(), 1.0f));
      weight.require_grad();
      ConvOptions options;
      options.groups = groups;
      const Var x = to(eager.f32({0, 8, 6, 5}, {}), dtype);
      const Tensor y = conv2d(x, to(weight, dtype), options);
      EXPECT_EQ(y.shape(), (Shape{0, 8, 4, 3}));
      Tensor(sum(to(y, DType::kF32))).backward();
      EXPECT_EQ(weight.grad().values(), Floats(shape.num_elements()));
    }
  }
}

TEST(EmptyValues, AttentionOfNoQueries) {
  Eager eager;
  const Tensor k = eager.f32({2, 5, 6}, Floats(60, 1.0f));
  const Tensor v = eager.f32({2, 5, 6}, Floats(60, 2.0f));
  k.require_grad();
  v.require_grad();
  const Tensor y = attention(eager.f32({2, 0, 6}, {}), k, v, {.heads = 2});
  EXPECT_EQ(y.shape(), (Shape{2, 0, 6}));
  Tensor(sum(y)).backward();
  EXPECT_EQ(k.grad().values(), Floats(60));
  EXPECT_EQ(v.grad().values(), Floats(60));
}

TEST(HugeOptions, StridesBehindTheInput) {
  Eager eager;
  const Tensor x = eager.f32(
      {1, 1, 4, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20});
  const Tensor weight = eager.f32({1, 1, 1, 3}, {1, 0, -2});
  const auto with_stride = [&](int64_t stride) {
    ConvOptions options;
    options.stride = {1, stride};
    return Tensor(conv2d(x, weight, options)).values();
  };
  EXPECT_EQ(with_stride(3), with_stride(int64_t{1} << 31));
  MaxPoolOptions pool;
  pool.stride = Size2(int64_t{1} << 31, int64_t{1} << 31);
  EXPECT_EQ(Tensor(max_pool2d(x, {2, 3}, pool)).values(), (Floats{8}));
  AvgPoolOptions mean;
  mean.stride = Size2(int64_t{1} << 31, 1);
  EXPECT_EQ(Tensor(avg_pool2d(x, {2, 3}, mean)).values(), (Floats{4.5f, 5.5f, 6.5f}));
}

TEST(HugeOptions, RepeatsOfNothing) {
  Eager eager;
  EXPECT_EQ(Tensor(repeat(eager.f32({0}, {}), {int64_t{1} << 40})).shape(), Shape{0});
  EXPECT_EQ(Tensor(repeat(eager.f32({2}, {1, 2}), {101})).values().size(), 202);
  EXPECT_EQ(Tensor(sum(repeat(eager.f32({2}, {1, 2}), {101}))).item(), 303.0f);
}

// The error of a function of x f32[1,6,8,9].
std::string Error(const std::function<Var(Var)>& function) {
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return function(in.f32("x", {1, 6, 8, 9}, Sbp::B())); });
  return graph.status().message();
}

TEST(HugeOptions, AreErrors) {
  const std::string prefix = "graph g, eval 'run': ";
  EXPECT_EQ(
      Error([](Var x) {
        return conv2d(x, ones({4, 6, 1, 1}), {.stride = {1, int64_t{1} << 62}});
      }),
      prefix +
          "conv2d: stride is [1,4611686018427387904], expected two numbers from 1 to 2147483648");
  EXPECT_EQ(Error([](Var x) {
              return repeat(x, {kHuge, 1, 1, 1});
            }).substr(0, 44),
            prefix + "repeat: concat: got siz");
  EXPECT_EQ(Error([](Var x) { return chunk(x, kHuge, 0)[0]; }),
            prefix +
                "chunk of %x f32[1,6,8,9]: got 9223372036854775807 parts of dim 0, expected a "
                "divisor of 1");
  EXPECT_EQ(Error([](Var x) {
              return reshape(x, {9, int64_t{1} << 53, -1, int64_t{1} << 40});
            }),
            prefix +
                "reshape of %x f32[1,6,8,9]: got the shape [9,9007199254740992,-1,1099511627776], "
                "expected sizes for its 432 elements, one of which may be -1");
  EXPECT_EQ(Error([](Var x) {
              return reshape(x, {0, -1});
            }),
            prefix +
                "reshape of %x f32[1,6,8,9]: got the shape [0,-1], expected sizes for its 432 "
                "elements, one of which may be -1");
  EXPECT_EQ(Error([](Var x) {
              return adaptive_max_pool2d(x, {kHuge, 1});
            }),
            prefix +
                "adaptive_max_pool2d of %x f32[1,6,8,9]: got the size [9223372036854775807,1], "
                "expected numbers from 1 to 65536");
  EXPECT_EQ(Error([](Var x) { return matrix_power(slice(x, 3, 0, 8), -kHuge - 1); }),
            prefix +
                "matrix_power of %slice f32[1,6,8,8]: got the exponent -9223372036854775808, "
                "expected one whose negative is a number");
  EXPECT_EQ(Error([](Var x) {
              return rotary(reshape(x, {6, 9, 8}), 8, yarn_rotary(8, 10000.0, -2.0, 100));
            }).substr(0, 66),
            prefix + "rotary: got the frequencies 'nan', expected 4");
}

TEST(HugeOptionsDeathTest, CountsOfKeysOutsideOfTheSequence) {
  for (const int64_t count : {int64_t{-1}, int64_t{3}}) {
    EXPECT_EXIT(
        {
          Eager eager;
          const Tensor x = eager.f32({1, 2, 4}, Floats(8, 1.0f));
          AttentionOptions options;
          options.mask = eager.i64({1}, {count});
          Tensor(attention(x, x, x, options)).values();
        },
        ::testing::ExitedWithCode(1),
        "attention: the mask gives a sequence " + std::to_string(count) + " keys, expected 0 to 2");
  }
}

}  // namespace
}  // namespace zg
