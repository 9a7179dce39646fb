// The values of initializers: their distributions, and the same bits for every cut into parts.

#include "framework/state/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/io/safetensors_writer.h"

namespace zg {
namespace {

constexpr RandomKey kKey = {7, 3};

std::vector<float> Values(const Initializer& initializer, const Shape& shape) {
  std::vector<float> values(shape.num_elements());
  InitialValues::Of(initializer, "weight", kKey, shape)
      .value()
      .Fill(0, shape.num_elements(), values.data());
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

TEST(InitialValues, Row) {
  EXPECT_EQ(Values(Initializer::Row({0.5, 2}), {2, 2}), (std::vector<float>{0.5f, 2, 0.5f, 2}));
  for (const Shape& shape : {Shape{2, 3}, Shape{}}) {
    EXPECT_EQ(
        InitialValues::Of(Initializer::Row({0.5, 2}), "weight", kKey, shape).status().message(),
        "initial values of 'weight': got a row of 2, expected one that fits " + shape.ToString());
  }
}

TEST(InitialValues, ARowOfZeros) {
  const Initializer normal = Initializer::Normal(1.0);
  const std::vector<float> all = Values(normal, {4, 3});
  std::vector<float> expected = all;
  std::fill_n(expected.begin() + 6, 3, 0.0f);
  EXPECT_EQ(Values(normal.WithZeroRow(2), {4, 3}), expected);
  std::vector<float> part(5);
  InitialValues::Of(normal.WithZeroRow(2), "weight", kKey, {4, 3}).value().Fill(4, 9, part.data());
  EXPECT_EQ(part, std::vector<float>(expected.begin() + 4, expected.begin() + 9));
  EXPECT_EQ(InitialValues::Of(normal.WithZeroRow(4), "weight", kKey, {4, 3}).status().message(),
            "initial values of 'weight': got zeros in row 4, expected a row of [4,3]");
}

TEST(InitialValues, AroundAMean) {
  const std::vector<float> uniform = Values(Initializer::Uniform(1.0, 3.0), {20000});
  const std::vector<float> normal = Values(Initializer::Normal(0.5, -2.0), {20000});
  double uniform_sum = 0.0, normal_sum = 0.0;
  for (size_t i = 0; i < uniform.size(); ++i) {
    ASSERT_GE(uniform[i], 1.0f);
    ASSERT_LT(uniform[i], 3.0f);
    uniform_sum += uniform[i];
    normal_sum += normal[i];
  }
  EXPECT_NEAR(uniform_sum / 20000, 2.0, 0.02);
  EXPECT_NEAR(normal_sum / 20000, -2.0, 0.02);
  EXPECT_NEAR(Deviation(normal), std::sqrt(4.25), 0.02);
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
  for (const Initializer& initializer :
       {Initializer::Constant(2.0), Initializer::Normal(0.5),
        Initializer::Row({1, 2, 3, 4, 5, 6, 7}), Initializer::Uniform(2.0, 2.5),
        Initializer::TruncatedNormal(1.0, 0.5), Initializer::Uniform(0.5),
        Initializer::Orthogonal()}) {
    const std::vector<float> whole = Values(initializer, shape);
    std::vector<float> part(10);
    InitialValues::Of(initializer, "weight", kKey, shape).value().Fill(11, 21, part.data());
    EXPECT_EQ(part, std::vector<float>(whole.begin() + 11, whole.begin() + 21))
        << initializer.ToString();
  }
}

// A file with a tensor in F32, one in BF16 and one of whole numbers.
std::string WriteFile(const std::vector<float>& weight) {
  const std::string path = testing::TempDir() + "/initial_values.safetensors";
  const std::vector<uint16_t> ones(6, 0x3f80);
  const std::vector<int64_t> ids(6);
  const Status status =
      WriteSafetensors(path, {{"weight", SafetensorsDType::kF32, {2, 3}, weight.data()},
                              {"other.ones", SafetensorsDType::kBF16, {2, 3}, ones.data()},
                              {"ids", SafetensorsDType::kI64, {2, 3}, ids.data()}});
  EXPECT_TRUE(status.ok()) << status.ToString();
  return path;
}

TEST(InitialValues, FromAFile) {
  const std::vector<float> weight = {1.5f, -2.0f, 3.25f, 0.0f, 5.0f, 1e-30f};
  const std::string path = WriteFile(weight);
  EXPECT_EQ(Values(Initializer::FromFile(path), {2, 3}), weight);
  EXPECT_EQ(Values(Initializer::FromFile(path, "other.ones"), {2, 3}), std::vector<float>(6, 1.0f));
  std::vector<float> part(3);
  InitialValues::Of(Initializer::FromFile(path), "weight", kKey, {2, 3})
      .value()
      .Fill(1, 4, part.data());
  EXPECT_EQ(part, std::vector<float>(weight.begin() + 1, weight.begin() + 4));
}

TEST(InitialValues, FilesThatDoNotFit) {
  const std::string path = WriteFile(std::vector<float>(6));
  const auto error = [&](const std::string& file, const std::string& tensor, const Shape& shape) {
    return InitialValues::Of(Initializer::FromFile(file, tensor), "net.bias", kKey, shape)
        .status()
        .message();
  };
  const std::string who = "initial values of 'net.bias': ";
  EXPECT_EQ(error(path, "", {6}), who + path + ": no tensor 'net.bias' among its 3");
  EXPECT_EQ(error(path, "weight", {6}),
            who + path + ": 'weight' is F32[2,3], expected F32, F16 or BF16 [6]");
  EXPECT_EQ(error(path, "ids", {2, 3}),
            who + path + ": 'ids' is I64[2,3], expected F32, F16 or BF16 [2,3]");
  const std::string missing = testing::TempDir() + "/no_such_file";
  EXPECT_EQ(error(missing, "", {6}).rfind(who + missing, 0), 0u) << error(missing, "", {6});
}

}  // namespace
}  // namespace zg
