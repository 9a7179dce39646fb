#include "framework/ir/initializer.h"

#include <fmt/core.h>

#include "framework/ir/quote.h"

namespace zg {

std::string Initializer::ToString() const {
  switch (kind) {
    case Kind::kZeros:
      return "zeros";
    case Kind::kOnes:
      return "ones";
    case Kind::kConstant:
      return fmt::format("constant({})", scale);
    case Kind::kTruncatedNormal:
      return fmt::format("truncated_normal({},{})", scale, bound);
    case Kind::kOrthogonal:
      return fmt::format("orthogonal({})", scale);
    case Kind::kNormal:
      return fmt::format("normal({})", scale);
    case Kind::kUniform:
      return fmt::format("uniform({})", scale);
    case Kind::kFile:
      return tensor.empty() ? fmt::format("file({})", Quote(path))
                            : fmt::format("file({},{})", Quote(path), Quote(tensor));
  }
  return "?";
}

}  // namespace zg
