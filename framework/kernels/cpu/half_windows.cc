#include "framework/kernels/cpu/half_windows.h"

#include "framework/kernels/cpu/gemm.h"

namespace zg {

const GemmMethod* HalfMethod(DType dtype) {
  if (dtype != DType::kBF16) return nullptr;
  const GemmMethod& fastest = FastestGemmMethod(dtype);
  return fastest.packed_k == 2 ? &fastest : nullptr;
}

}  // namespace zg
