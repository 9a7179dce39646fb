#include "framework/ops/window_rules.h"

#include <fmt/format.h>

namespace zg {

Status CheckImages(const ir::OpCall& call, const InputNames& names, size_t index) {
  const Shape& shape = call.inputs[index].shape;
  if (shape.num_dims() != 4) {
    return Rejected(call, names, fmt::format("{} has not 4 dims", names[index]));
  }
  if (shape.dim(2) > 0 && shape.dim(3) > 0) return Status::Ok();
  return Rejected(call, names, fmt::format("{} has no rows or columns", names[index]));
}

Status CheckTwoNumbers(const ir::OpCall& call, const char* name, int64_t lowest) {
  constexpr int64_t kMost = int64_t{1} << 31;  // so that positions fit an int64_t
  const std::vector<int64_t>& numbers = call.attributes.Ints(name);
  const auto fits = [&](int64_t number) { return number >= lowest && number <= kMost; };
  if (numbers.size() == 2 && fits(numbers[0]) && fits(numbers[1])) return Status::Ok();
  return InvalidArgument("{}: {} is [{}], expected two numbers from {} to {}", call.op->name, name,
                         fmt::join(numbers, ","), lowest, kMost);
}

Status CheckPaddingOfWindow(const ir::OpCall& call, const InputNames& names) {
  for (int i = 0; i < 2; ++i) {
    const int64_t kernel = call.attributes.Ints("kernel")[i];
    const int64_t padding = call.attributes.Ints("padding")[i];
    if (padding <= kernel / 2) continue;
    return Rejected(call, names,
                    fmt::format("the padding is {}, expected at most half of the window's {}",
                                padding, kernel));
  }
  return Status::Ok();
}

StatusOr<int64_t> CountWindows(const ir::OpCall& call, const InputNames& names, int i, int64_t size,
                               int64_t kernel) {
  const int64_t padded = size + SizeProduct(2, call.attributes.Ints("padding")[i]);
  const int64_t window = SizeProduct(call.attributes.Ints("dilation")[i], kernel - 1) + 1;
  if (window <= padded && window <= Shape::kMaxElements) {
    return (padded - window) / call.attributes.Ints("stride")[i] + 1;
  }
  return Rejected(call, names,
                  fmt::format("the window has size {}, expected one within the padded size {}",
                              window, padded));
}

}  // namespace zg
