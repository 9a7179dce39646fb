#include "framework/passes/dividing_sizes.h"

#include <fmt/format.h>

namespace zg {
namespace {

// "1 and 29"; numbers below 1 are left out.
std::string Both(int64_t below, int64_t above) {
  if (below < 1) return fmt::format("{}", above);
  return above < 1 ? fmt::format("{}", below) : fmt::format("{} and {}", below, above);
}

}  // namespace

std::string NearestThatDivide(int64_t size, int groups, int num_parts) {
  const int64_t unit = int64_t{num_parts} * groups;
  const int64_t below = size / unit * unit;
  const std::string sizes =
      fmt::format("the nearest sizes that do are {}", Both(below, below + unit));
  if (size % groups != 0) return sizes;
  const int64_t rows = size / groups;
  int64_t fewer = num_parts - 1, more = num_parts + 1;
  while (fewer > 1 && rows % fewer != 0) --fewer;
  while (more <= rows && rows % more != 0) ++more;
  return fmt::format("{}, the nearest numbers of parts {}", sizes,
                     Both(fewer, more <= rows ? more : 0));
}

}  // namespace zg
