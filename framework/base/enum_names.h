// Enums that print and parse themselves. An enum opts in by a specialisation that lists the texts
// of its values, which count from 0:
//
//   enum class ReduceEvery { kMicroBatch, kStep };
//   template <>
//   struct EnumNames<ReduceEvery> {
//     static constexpr std::string_view kNames[] = {"micro-batch", "step"};
//   };
//
//   EnumName(ReduceEvery::kStep)          "step"
//   ParseEnum<ReduceEvery>("step")        ReduceEvery::kStep
#pragma once

#include <iterator>
#include <optional>
#include <string_view>

namespace zg {

template <typename Enum>
struct EnumNames;

template <typename Enum>
constexpr std::string_view EnumName(Enum value) {
  return EnumNames<Enum>::kNames[static_cast<int>(value)];
}

// None if no value has the text.
template <typename Enum>
std::optional<Enum> ParseEnum(std::string_view text) {
  for (size_t i = 0; i < std::size(EnumNames<Enum>::kNames); ++i) {
    if (EnumNames<Enum>::kNames[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace zg
