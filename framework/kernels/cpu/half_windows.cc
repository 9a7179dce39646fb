#include "framework/kernels/cpu/half_windows.h"

#include <cstring>

#include "framework/kernels/cpu/gemm.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

template <int64_t kRun>
void Copy(const HalfMatrix& matrix, int64_t depth, int64_t columns, BFloat16* out) {
  Multiversion([=]() ZG_VERSION {
    const HalfMatrix from = matrix;
    for (int64_t k = 0; k < depth; ++k) {
      const BFloat16* const row = from.data + from.rows[k];
      BFloat16* const to = out + k * columns;
      for (int64_t j = 0; j < columns; j += kRun) {
        std::memcpy(to + j, row + from.columns[j], kRun * sizeof(BFloat16));
      }
    }
  });
}

}  // namespace

const GemmMethod* HalfMethod(DType dtype) {
  if (dtype != DType::kBF16) return nullptr;
  const GemmMethod& fastest = FastestGemmMethod(dtype);
  return fastest.packed_k == 2 ? &fastest : nullptr;
}

void CopyWindows(const HalfMatrix& matrix, int64_t depth, int64_t columns, BFloat16* out) {
  switch (matrix.run) {
    case 16:
      return Copy<16>(matrix, depth, columns, out);
    case 8:
      return Copy<8>(matrix, depth, columns, out);
    case 4:
      return Copy<4>(matrix, depth, columns, out);
    case 2:
      return Copy<2>(matrix, depth, columns, out);
    default:
      return Copy<1>(matrix, depth, columns, out);
  }
}

}  // namespace zg
