#include <algorithm>
#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// To the nearest number with as many significant bits as the dtype has; ties to even.
ReferenceOutputs Cast(const ReferenceCall& call) {
  const DType dtype = call.attributes.DType("dtype");
  const int significant_bits = dtype == DType::kF32 ? 24 : dtype == DType::kBF16 ? 8 : 11;
  const int lowest_exponent = dtype == DType::kF16 ? -13 : -125;  // below lie the denormal numbers
  std::vector<double> y = call.inputs[0].values;
  for (double& value : y) {
    int exponent = 0;
    std::frexp(value, &exponent);
    const int lowest_bit = std::max(exponent, lowest_exponent) - significant_bits;
    value = std::ldexp(std::nearbyint(std::ldexp(value, -lowest_bit)), lowest_bit);
  }
  return {y};
}

}  // namespace

FamilyCases CastCases() {
  FamilyCases family;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const ir::Attributes attributes = {{"dtype", dtype}};
    const auto add_case = [&](const char* label, const Shape& shape, double range) {
      family.cases.push_back({.op = "cast",
                              .label = fmt::format("{} to {}", label, DTypeName(dtype)),
                              .inputs = {F32(shape, -range, range)},
                              .attributes = attributes,
                              .reference = Cast,
                              .tolerance = 0,
                              // Differences of rounded numbers are not of the size of the step's.
                              .check_gradient = dtype == DType::kF32});
    };
    add_case("scalar", {}, 1.0);
    add_case("odd", {5, 7}, 1.0);
    add_case("splits", {6, 6, 6}, 1000.0);
    add_case("small numbers", {3, 11}, 1e-6);
    family.cases.back().check_gradient = false;
    add_case("many elements", {3, 1531}, 100.0);
    family.cases.back().check_gradient = false;
  }
  family.rejections = {
      {"cast", {I64({2}, 5)}, {{"dtype", DType::kBF16}}, "cast: x is not floating-point: x i64[2]"},
      {"cast",
       {F32({2})},
       {{"dtype", DType::kI64}},
       "cast: got dtype i64, expected f32, bf16 or f16"}};
  family.large = {Sized("cast", "many elements", {F32({70001})}, {{"dtype", DType::kBF16}}, {0})};
  family.bench = {Sized("cast", "bucket", {F32({4 << 20})}, {{"dtype", DType::kBF16}}, {0})};
  family.exact_on_gpu = {"cast"};
  return family;
}

}  // namespace zg::testing
