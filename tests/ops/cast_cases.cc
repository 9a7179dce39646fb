#include <algorithm>
#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// Rounds to the nearest number with as many significant bits as the dtype has; ties to even.
ReferenceOutputs Cast(const ReferenceCall& call) {
  const DType dtype = call.attributes.DType("dtype");
  const int significant_bits = dtype == DType::kF32 ? 24 : dtype == DType::kBF16 ? 8 : 11;
  const int lowest_exponent = dtype == DType::kF16 ? -13 : -125;  // numbers below are denormal
  std::vector<double> y = call.inputs[0].values;
  for (double& value : y) {
    int exponent = 0;
    std::frexp(value, &exponent);
    const int lowest_bit = std::max(exponent, lowest_exponent) - significant_bits;
    value = std::ldexp(std::nearbyint(std::ldexp(value, -lowest_bit)), lowest_bit);
  }
  return {y};
}

// Towards 0, or whether it is not 0.
ReferenceOutputs CastToWhole(const ReferenceCall& call) {
  const bool to_bool = call.attributes.DType("dtype") == DType::kBool;
  std::vector<double> y = call.inputs[0].values;
  for (double& value : y) value = to_bool ? (value != 0.0 ? 1.0 : 0.0) : std::trunc(value);
  return {y};
}

void AddWholeNumbers(std::vector<OpCase>* cases) {
  const auto add = [&](InputSpec x, DType dtype) {
    const bool is_whole = !IsFloat(dtype);
    cases->push_back({.op = "cast",
                      .label = fmt::format("{} to {}", x.type.ToString(), DTypeName(dtype)),
                      .inputs = {x},
                      .attributes = {{"dtype", dtype}},
                      .reference = is_whole ? CastToWhole : Cast,
                      .prepare = [](ReferenceCall& call) { call.inputs[0].values[1] = 0.0; },
                      .tolerance = 0,
                      .check_gradient = false});
  };
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kI64, DType::kBool}) {
    add(I64({5, 7}, 200), dtype);
    add(Bool({3, 1531}), dtype);
    if (!IsFloat(dtype)) add(F32({5, 7}, -20.0, 20.0), dtype);
  }
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
                              // Differences of rounded numbers do not have the size of the step's.
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
  AddWholeNumbers(&family.cases);
  family.rejections = {{"cast",
                        {{{DType::kU8, {2}}}},
                        {{"dtype", DType::kBF16}},
                        "cast: expected f32, bf16, f16, i64 or bool: x u8[2]"},
                       {"cast",
                        {F32({2})},
                        {{"dtype", DType::kI32}},
                        "cast: got dtype i32, expected f32, bf16, f16, i64 or bool"}};
  family.large = {Sized("cast", "many elements", {F32({70001})}, {{"dtype", DType::kBF16}}, {0})};
  family.bench = {Sized("cast", "bucket", {F32({4 << 20})}, {{"dtype", DType::kBF16}}, {0})};
  family.exact_on_gpu = {"cast"};
  return family;
}

}  // namespace zg::testing
