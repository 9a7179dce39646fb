#include "framework/ir/initializer.h"

#include <fmt/core.h>

namespace zg {

std::string Initializer::ToString() const {
  switch (kind) {
    case Kind::kZeros:
      return "zeros";
    case Kind::kOnes:
      return "ones";
    case Kind::kNormal:
      return fmt::format("normal({})", scale);
    case Kind::kUniform:
      return fmt::format("uniform({})", scale);
  }
  return "?";
}

}  // namespace zg
