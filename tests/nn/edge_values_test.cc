// Functions at the edges of what they take: vectors of zeros, targets of 0, rows that do not count,
// powers of 0. Results and gradients are finite, and those of PyTorch.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"

namespace zg {
namespace {

using Floats = std::vector<float>;
using Function = std::function<Var(Eager& eager, Var x)>;

struct Outcome {
  Floats y;
  Floats dx;  // of the sum of y
};

Outcome Of(const Shape& shape, const Floats& values, const Function& function) {
  Eager eager;
  const Tensor x = eager.f32(shape, values);
  x.require_grad();
  const Tensor y = function(eager, x);
  Tensor(sum(y)).backward();
  return {y.values(), x.grad().values()};
}

void ExpectNear(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-6f * std::max(1.0f, std::abs(want[i]))) << "element " << i;
  }
}

void Expect(const Outcome& got, const Floats& y, const Floats& dx) {
  ExpectNear(got.y, y);
  ExpectNear(got.dx, dx);
}

TEST(EdgeValues, NormsOfZeros) {
  const Floats rows = {0, 0, 3, 4, 0, 2};
  Expect(Of({3, 2}, rows, [](Eager&, Var x) { return norm(x, {-1}); }), {0, 5, 2},
         {0, 0, 0.6f, 0.8f, 0, 1});
  const auto of = [&](double p) {
    return Of({3, 2}, rows, [p](Eager&, Var x) { return vector_norm(x, p, {-1}); });
  };
  Expect(of(2.0), {0, 5, 2}, {0, 0, 0.6f, 0.8f, 0, 1});
  Expect(of(1.0), {0, 7, 2}, {0, 0, 1, 1, 0, 1});
  Expect(of(3.0), {0, 4.497941f, 2}, {0, 0, 0.444851f, 0.790847f, 0, 1});
  Expect(of(0.5), {0, 13.928203f, 2}, {0, 0, 2.154701f, 1.866025f, 0, 1});
  Expect(of(-1.0), {0, 1.714286f, 0}, {0, 0, 0.326531f, 0.183673f, 0, 0});
  Expect(of(HUGE_VAL), {0, 4, 2}, {0, 0, 0, 1, 0, 1});
}

TEST(EdgeValues, CosinesOfZeros) {
  const auto cosine = [](Eager& eager, Var x) {
    return cosine_similarity(x, eager.f32({2, 2}, {0, 0, 1, 1}));
  };
  Expect(Of({2, 2}, {0, 0, 1, 0}, cosine), {0, 0.70710678f}, {0, 0, 0, 0.70710678f});
  const auto loss = [](Eager& eager, Var x) {
    return cosine_embedding_loss(x, eager.f32({1, 2}, {0, 0}), eager.i64({1}, {1}));
  };
  Expect(Of({1, 2}, {0, 0}, loss), {1}, {0, 0});
}

}  // namespace
}  // namespace zg
