#include "framework/tensor/dtype.h"

#include <cmath>

namespace zg {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t bytes;
  bool is_float;
};

constexpr DTypeInfo kDTypes[] = {
    {DType::kF32, "f32", 4, true},    {DType::kBF16, "bf16", 2, true},
    {DType::kF16, "f16", 2, true},    {DType::kI64, "i64", 8, false},
    {DType::kI32, "i32", 4, false},   {DType::kU8, "u8", 1, false},
    {DType::kBool, "bool", 1, false},
};

const DTypeInfo& Info(DType dtype) { return kDTypes[static_cast<int>(dtype)]; }

}  // namespace

int64_t SizeOf(DType dtype) { return Info(dtype).bytes; }
std::string_view DTypeName(DType dtype) { return Info(dtype).name; }
bool IsFloat(DType dtype) { return Info(dtype).is_float; }

bool CanHold(DType dtype, double number) {
  if (IsFloat(dtype)) return true;
  if (dtype == DType::kBool) return number == 0.0 || number == 1.0;
  const int bits = static_cast<int>(8 * SizeOf(dtype));
  const bool has_sign = dtype != DType::kU8;
  const double end = std::ldexp(1.0, bits - (has_sign ? 1 : 0));
  return number == std::floor(number) && number < end && number >= (has_sign ? -end : 0.0);
}

StatusOr<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return InvalidArgument("unknown dtype '{}': expected f32, bf16, f16, i64, i32, u8 or bool", name);
}

}  // namespace zg
