#include "framework/ir/initializer.h"

#include <fmt/format.h>

#include "framework/ir/quote.h"

namespace zg {

std::string Initializer::ToString() const {
  if (zero_row >= 0) return fmt::format("{} zero_row({})", WithZeroRow(-1).ToString(), zero_row);
  const std::string scale_and_mean =
      mean == 0.0 ? fmt::format("{}", scale) : fmt::format("{},{}", scale, mean);
  switch (kind) {
    case Kind::kZeros:
      return "zeros";
    case Kind::kOnes:
      return "ones";
    case Kind::kConstant:
      return fmt::format("constant({})", scale);
    case Kind::kRow:
      return fmt::format("row({})", fmt::join(row, ","));
    case Kind::kTruncatedNormal:
      return fmt::format("truncated_normal({},{})", scale, bound);
    case Kind::kOrthogonal:
      return fmt::format("orthogonal({})", scale);
    case Kind::kNormal:
      return fmt::format("normal({})", scale_and_mean);
    case Kind::kUniform:
      return fmt::format("uniform({})", scale_and_mean);
    case Kind::kFile:
      return tensor.empty() ? fmt::format("file({})", Quote(path))
                            : fmt::format("file({},{})", Quote(path), Quote(tensor));
  }
  return "?";
}

}  // namespace zg
