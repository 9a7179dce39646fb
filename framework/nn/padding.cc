#include "framework/nn/padding.h"

#include <vector>

#include "framework/nn/dims.h"
#include "framework/nn/indexing.h"
#include "framework/nn/shapes.h"

namespace zg {
namespace {

// `size` elements for one side, of which the innermost is beside x.
Var Side(Var x, int64_t dim, int64_t size, bool is_before, PadMode mode) {
  const int64_t length = x.dim(static_cast<int>(dim));
  switch (mode) {
    case PadMode::kReflect:
      return flip(
          is_before ? slice(x, dim, 1, size + 1) : slice(x, dim, length - 1 - size, length - 1),
          dim);
    case PadMode::kReplicate: {
      Dims shape = x.shape().dims();
      shape[static_cast<size_t>(dim)] = size;
      return expand(is_before ? slice(x, dim, 0, 1) : slice(x, dim, length - 1, length), shape);
    }
    case PadMode::kCircular:
      return is_before ? slice(x, dim, length - size, length) : slice(x, dim, 0, size);
  }
  return Var();
}

int64_t MostElements(int64_t length, PadMode mode) {
  constexpr int64_t kAnyNumber = int64_t{1} << 40;
  if (mode == PadMode::kReplicate) return length > 0 ? kAnyNumber : 0;
  return mode == PadMode::kReflect ? length - 1 : length;
}

}  // namespace

Var pad(Var x, int64_t dim, int64_t before, int64_t after, PadMode mode) {
  return nn::Checked("pad", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, nn::DimOf("pad", x, dim));
    const int64_t most = MostElements(x.dim(static_cast<int>(own)), mode);
    if (before < 0 || after < 0 || before > most || after > most) {
      return InvalidArgument(
          "{}: got {} elements before and {} after dim {}, expected numbers from 0 to {}",
          nn::Caller("pad", x), before, after, own, most);
    }
    std::vector<Var> parts;
    if (before > 0) parts.push_back(Side(x, own, before, /*is_before=*/true, mode));
    parts.push_back(x);
    if (after > 0) parts.push_back(Side(x, own, after, /*is_before=*/false, mode));
    return parts.size() == 1 ? x : concat(parts, own);
  });
}

}  // namespace zg
