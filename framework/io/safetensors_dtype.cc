#include "framework/io/safetensors_dtype.h"

#include "framework/base/check.h"

namespace zg {
namespace {

struct DTypeInfo {
  SafetensorsDType dtype;
  std::string_view name;
  int bits;
};

constexpr DTypeInfo kDTypes[] = {
    {SafetensorsDType::kF32, "F32", 32},
    {SafetensorsDType::kF16, "F16", 16},
    {SafetensorsDType::kBF16, "BF16", 16},
    {SafetensorsDType::kF64, "F64", 64},
    {SafetensorsDType::kF8E5M2, "F8_E5M2", 8},
    {SafetensorsDType::kF8E4M3, "F8_E4M3", 8},
    {SafetensorsDType::kF8E8M0, "F8_E8M0", 8},
    {SafetensorsDType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    {SafetensorsDType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    {SafetensorsDType::kF6E2M3, "F6_E2M3", 6},
    {SafetensorsDType::kF6E3M2, "F6_E3M2", 6},
    {SafetensorsDType::kF4, "F4", 4},
    {SafetensorsDType::kC64, "C64", 64},
    {SafetensorsDType::kI64, "I64", 64},
    {SafetensorsDType::kI32, "I32", 32},
    {SafetensorsDType::kI16, "I16", 16},
    {SafetensorsDType::kI8, "I8", 8},
    {SafetensorsDType::kU64, "U64", 64},
    {SafetensorsDType::kU32, "U32", 32},
    {SafetensorsDType::kU16, "U16", 16},
    {SafetensorsDType::kU8, "U8", 8},
    {SafetensorsDType::kBool, "BOOL", 8},
};

const DTypeInfo& InfoOf(SafetensorsDType dtype) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.dtype == dtype) return info;
  }
  ZG_CHECK(false, "SafetensorsDType {} is not in the table", static_cast<int>(dtype));
  __builtin_unreachable();
}

}  // namespace

int BitsOf(SafetensorsDType dtype) { return InfoOf(dtype).bits; }

std::string_view SafetensorsDTypeName(SafetensorsDType dtype) { return InfoOf(dtype).name; }

std::optional<SafetensorsDType> ParseSafetensorsDType(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

}  // namespace zg
