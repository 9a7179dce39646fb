// The algorithm of a product as GemmChoices has it. cuBLASLt's is stored as the bytes of its
// cublasLtMatmulAlgo_t: they are what its documentation lets programs keep for the same version of the
// library, whereas the attributes that it tells of an algorithm (tile, stages, split, ...) need not be
// all that it consists of.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/device/device.h"
#include "framework/kernels/cuda/matmul.h"
#include "framework/kernels/gemm_choices.h"

namespace zg::cuda {

// "bf16 (32768, 768) x (3072, 768)^T + bias, gelu, at multiples of 16 bytes".
std::string ProductText(const MatmulShape& shape, uint32_t alignment);

// 128 hexadecimal digits.
std::string AlgorithmText(const cublasLtMatmulAlgo_t& algorithm);
// None if it is not of AlgorithmText.
std::optional<cublasLtMatmulAlgo_t> ParseAlgorithm(std::string_view text);

// Times what cuBLASLt proposes for operands at multiples of `alignment` bytes, on operands of its own,
// which it frees. Errors: too little memory; a product that fails.
StatusOr<GemmChoice> MeasureMatmul(const MatmulShape& shape, uint32_t alignment, Device& device);

}  // namespace zg::cuda
