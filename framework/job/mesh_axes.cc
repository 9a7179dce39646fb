#include "framework/job/mesh_axes.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace zg {
namespace {

constexpr int64_t kMaxRanks = 1 << 20;
constexpr std::array<std::string_view, 4> kNames = {"data", "shard", "replica", "tensor"};

StatusOr<int> ParseNumber(std::string_view digits, std::string_view of, std::string_view axis) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  if (error == std::errc() && end == digits.end() && number >= 1 && number <= kMaxRanks) {
    return number;
  }
  return InvalidArgument("got {} {} along the axis {}, expected a number from 1 to 2^20",
                         digits.empty() ? "no" : digits, of, axis);
}

StatusOr<MeshAxis> ParseAxis(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (equals == text.npos) {
    return InvalidArgument("got '{}', expected NAME=SIZE, such as replica=2,shard=4", text);
  }
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
    return InvalidArgument(
        "got the axis '{}', expected data or shard, over which ZeRO shards, replica, along which it "
        "keeps copies, or tensor, along which ranks share micro-batches",
        name);
  }
  const std::string_view numbers = text.substr(equals + 1);
  const size_t slash = numbers.find('/');
  MeshAxis axis;
  axis.name = name;
  ZG_ASSIGN_OR_RETURN(axis.size, ParseNumber(numbers.substr(0, slash), "ranks", name));
  if (slash == numbers.npos) return axis;
  ZG_ASSIGN_OR_RETURN(axis.parts, ParseNumber(numbers.substr(slash + 1), "parts", name));
  ZG_RETURN_IF_ERROR(CheckParts(axis));
  return axis;
}

}  // namespace

StatusOr<std::vector<MeshAxis>> ParseMeshAxes(std::string_view text) {
  std::vector<MeshAxis> axes;
  int64_t num_ranks = 1;
  for (size_t begin = 0; begin < text.size() + 1 && !text.empty();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    ZG_ASSIGN_OR_RETURN(MeshAxis axis, ParseAxis(text.substr(begin, comma - begin)));
    for (const MeshAxis& other : axes) {
      if (other.name == axis.name) {
        return InvalidArgument("got the axis {} twice, expected one size for each", axis.name);
      }
    }
    num_ranks *= axis.size;
    if (num_ranks > kMaxRanks) {
      return InvalidArgument("got '{}', expected at most 2^20 ranks together", text);
    }
    axes.push_back(std::move(axis));
    begin = comma + 1;
  }
  return axes;
}

}  // namespace zg
