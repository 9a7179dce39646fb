// The algorithm of a product as GemmChoices stores it. A cuBLASLt algorithm is stored as the bytes
// of its cublasLtMatmulAlgo_t, which its documentation allows programs to keep for the same version
// of the library. The attributes that it reports of an algorithm (tile, stages, split, ...) need
// not be all of it.
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
// None if the text is not from AlgorithmText.
std::optional<cublasLtMatmulAlgo_t> ParseAlgorithm(std::string_view text);

// "algorithm 66, tile 20, stages 36, split-K 1, reduction scheme 0, cluster 3": the configuration that
// cuBLASLt reports, in its numbers; -1: not reported.
std::string ConfigurationText(const cublasLtMatmulAlgo_t& algorithm);

// Logs at debug the algorithm by which this process multiplies a product, once for each product.
void LogAlgorithm(const std::string& product, const cublasLtMatmulHeuristicResult_t& chosen);

// Times cuBLASLt's proposals for operands at multiples of `alignment` bytes, on operands of its
// own, which it frees. Errors: too little memory; a product that fails.
StatusOr<GemmChoice> MeasureMatmul(const MatmulShape& shape, uint32_t alignment, Device& device);

}  // namespace zg::cuda
