// The values of initializers: their distributions, and the same bits for every cut into parts.

#include "framework/state/initial_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace zg {
namespace {

constexpr RandomKey kKey = {7, 3};

std::vector<float> Values(const Initializer& initializer, const Shape& shape) {
  std::vector<float> values(shape.num_elements());
  InitialValues(initializer, kKey, shape).Fill(0, shape.num_elements(), values.data());
  return values;
}

double Deviation(const std::vector<float>& values) {
  double squares = 0.0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(InitialValues, Constant) {
  EXPECT_EQ(Values(Initializer::Constant(0.25), {3}), (std::vector<float>{0.25f, 0.25f, 0.25f}));
}

TEST(InitialValues, TruncatedNormal) {
  const std::vector<float> values = Values(Initializer::TruncatedNormal(0.5, 1.0), {20000});
  for (const float value : values) ASSERT_LE(std::abs(value), 1.0f);
  // For a normal distribution truncated at two deviations.
  EXPECT_NEAR(Deviation(values), 0.5 * 0.8796, 0.005);
  for (const float value : Values(Initializer::TruncatedNormal(1.0, 1e-9), {3})) {
    EXPECT_LE(std::abs(value), 1e-9f);
  }
}

TEST(InitialValues, OrthogonalRowsOrColumns) {
  for (const Shape& shape : {Shape{4, 2, 5}, Shape{10, 4}}) {
    const std::vector<float> values = Values(Initializer::Orthogonal(2.0), shape);
    const int64_t rows = shape.dim(0), columns = shape.num_elements() / rows;
    const bool is_wide = rows <= columns;
    const int64_t vectors = is_wide ? rows : columns, length = is_wide ? columns : rows;
    for (int64_t a = 0; a < vectors; ++a) {
      for (int64_t b = 0; b < vectors; ++b) {
        double dot = 0.0;
        for (int64_t i = 0; i < length; ++i) {
          dot += double{values[is_wide ? a * length + i : i * vectors + a]} *
                 values[is_wide ? b * length + i : i * vectors + b];
        }
        EXPECT_NEAR(dot, a == b ? 4.0 : 0.0, 1e-6);
      }
    }
  }
}

TEST(InitialValues, PartsHaveTheBitsOfTheWhole) {
  const Shape shape = {6, 7};
  for (const Initializer& initializer : {Initializer::Constant(2.0), Initializer::Normal(0.5),
                                         Initializer::TruncatedNormal(1.0, 0.5),
                                         Initializer::Uniform(0.5), Initializer::Orthogonal()}) {
    const std::vector<float> whole = Values(initializer, shape);
    std::vector<float> part(10);
    InitialValues(initializer, kKey, shape).Fill(11, 21, part.data());
    EXPECT_EQ(part, std::vector<float>(whole.begin() + 11, whole.begin() + 21))
        << initializer.ToString();
  }
}

}  // namespace
}  // namespace zg
