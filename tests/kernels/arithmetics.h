// The methods of matrix multiplication that this processor can run, as parameters of tests; the AMX
// method runs on emulated tiles everywhere.
#pragma once

#include <string>
#include <vector>

#include "framework/kernels/cpu/gemm_amx.h"
#include "framework/kernels/cpu/gemm_pairs.h"
#include "framework/kernels/cpu/gemm_panels.h"
#include "framework/tensor/dtype.h"
#include "tests/kernels/emulated_amx_tiles.h"

namespace zg::testing {

struct Arithmetic {
  std::string name;
  DType dtype;
  const GemmMethod* method;
};

inline std::vector<Arithmetic> Arithmetics() {
  std::vector<Arithmetic> all = {
      {"f32", DType::kF32, &FloatMethod(DType::kF32)},
      {"f16", DType::kF16, &FloatMethod(DType::kF16)},
      {"bf16_widened", DType::kBF16, &FloatMethod(DType::kBF16)},
      {"bf16_emulated_tiles", DType::kBF16, &kEmulatedAmxMethod},
  };
  if (HasPairProducts()) all.push_back({"bf16_pairs", DType::kBF16, &PairMethod()});
  if (HasAmxProducts()) all.push_back({"bf16_tiles", DType::kBF16, &AmxMethod()});
  return all;
}

}  // namespace zg::testing
