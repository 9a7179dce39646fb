#include <cstring>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ir::Attributes Of(DType dtype, const Shape& shape, std::vector<int64_t> numbers) {
  return {{"dtype", dtype}, {"shape", shape}, {"numbers", std::move(numbers)}};
}

// Halves from -2 on.
int64_t BitsOf(int64_t i) {
  const float value = 0.5f * static_cast<float>(i) - 2.0f;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

OpCase Halves(std::string label, const Shape& shape) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < shape.num_elements(); ++i) numbers.push_back(BitsOf(i));
  return {.op = "literal",
          .label = std::move(label),
          .attributes = Of(DType::kF32, shape, numbers),
          .reference =
              [](const ReferenceCall& call) {
                std::vector<double> y;
                for (size_t i = 0; i < call.attributes.Ints("numbers").size(); ++i) {
                  y.push_back(0.5 * static_cast<double>(i) - 2.0);
                }
                return ReferenceOutputs{y};
              },
          .tolerance = 0,
          .is_f32_only = true};
}

}  // namespace

FamilyCases LiteralCases() {
  FamilyCases family;
  family.cases = {Halves("numbers", {2, 3}), Halves("a number", {}), Halves("many", {2500})};
  family.cases.push_back({.op = "literal",
                          .label = "integers",
                          .attributes = Of(DType::kI64, {3}, {5, -1, int64_t{1} << 50}),
                          .reference =
                              [](const ReferenceCall&) {
                                return ReferenceOutputs{{5.0, -1.0, 1125899906842624.0}};
                              },
                          .tolerance = 0,
                          .is_f32_only = true});
  family.rejections = {
      {"literal",
       {},
       Of(DType::kI64, {2, 2}, {1, 2, 3}),
       "literal: got 3 numbers for i64[2,2], expected one per element"},
      {"literal", {}, Of(DType::kBF16, {1}, {1}), "literal: got bf16[1], expected f32 or i64"},
  };
  const std::vector<int64_t> zeros(5000, 0);
  family.large = {Sized("literal", "pieces", {}, Of(DType::kF32, {5000}, zeros))};
  family.bench = family.large;
  for (OpCase* one : {&family.large[0], &family.bench[0]}) one->is_f32_only = true;
  family.exact_on_gpu = {"literal"};
  return family;
}

}  // namespace zg::testing
