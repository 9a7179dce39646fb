#include "tests/cuda_emulation/cublaslt_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "framework/tensor/half.h"

namespace zg::emulation {
namespace {

float Element(cudaDataType type, const void* memory, int64_t index) {
  if (type == CUDA_R_16BF) return ToF32(static_cast<const BFloat16*>(memory)[index]);
  if (type == CUDA_R_16F) return ToF32(static_cast<const Float16*>(memory)[index]);
  return static_cast<const float*>(memory)[index];
}

void SetElement(cudaDataType type, void* memory, int64_t index, float value) {
  if (type == CUDA_R_16BF) {
    static_cast<BFloat16*>(memory)[index] = FromF32<BFloat16>(value);
  } else if (type == CUDA_R_16F) {
    static_cast<Float16*>(memory)[index] = FromF32<Float16>(value);
  } else {
    static_cast<float*>(memory)[index] = value;
  }
}

// To 10 bits of mantissa.
float RoundToTf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

double GeluTanh(double x) { return std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); }
float Gelu(float x) { return static_cast<float>(0.5 * x * (1.0 + GeluTanh(x))); }
float GeluDerivative(float x) {
  const double t = GeluTanh(x);
  const double inner = 0.7978845608028654 * (1.0 + 3 * 0.044715 * x * x);
  return static_cast<float>(0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner);
}

// op(matrix), row by row in f32.
std::vector<float> Unpack(const void* memory, const CublasLtMatrixLayout& layout,
                          bool is_transposed, bool is_tf32) {
  std::vector<float> values(static_cast<size_t>(layout.rows * layout.columns));
  for (int64_t column = 0; column < layout.columns; ++column) {
    for (int64_t row = 0; row < layout.rows; ++row) {
      const float value = Element(layout.type, memory, column * layout.stride + row);
      const int64_t at = is_transposed ? column * layout.rows + row : row * layout.columns + column;
      values[at] = is_tf32 ? RoundToTf32(value) : value;
    }
  }
  return values;
}

// The terms of a sum over `depth` in the order in which an algorithm adds them.
std::vector<int64_t> TermsIn(Order order, int64_t depth) {
  std::vector<int64_t> terms;
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t half = (depth + 1) / 2;
    switch (order) {
      case Order::kBackward:
        terms.push_back(depth - 1 - k);
        break;
      case Order::kEvenFirst:
        terms.push_back(k < half ? 2 * k : 2 * (k - half) + 1);
        break;
      default:
        terms.push_back(k);
    }
  }
  return terms;
}

}  // namespace

void Multiply(const ProductCall& call) {
  const CublasLtMatmulDesc& op = call.op;
  const cudaDataType type = call.d_layout.type;
  const bool is_tf32 = op.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const std::vector<float> left =
      Unpack(call.a, call.a_layout, op.transpose_a == CUBLAS_OP_T, is_tf32);
  const std::vector<float> right =
      Unpack(call.b, call.b_layout, op.transpose_b == CUBLAS_OP_T, is_tf32);
  const int64_t rows = call.d_layout.rows;
  const int64_t columns = call.d_layout.columns;
  const int64_t depth = static_cast<int64_t>(left.size()) / rows;
  const std::vector<int64_t> terms_in_order = TermsIn(call.order, depth);
  std::vector<float> sums(static_cast<size_t>(columns));
  for (int64_t row = 0; row < rows; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (const int64_t k : terms_in_order) {
      const float factor = left[row * depth + k];
      const float* const terms = right.data() + k * columns;
      for (int64_t column = 0; column < columns; ++column) sums[column] += factor * terms[column];
    }
    const float bias = op.has_bias() ? Element(type, op.bias, row) : 0.0f;
    for (int64_t column = 0; column < columns; ++column) {
      float value = sums[column] + bias;
      if (call.c != nullptr) value += Element(type, call.c, column * call.c_layout.stride + row);
      const int64_t aux_at = column * op.aux_stride + row;
      if (op.writes_aux()) {
        SetElement(type, op.aux, aux_at, value);
        value = Gelu(value);
      } else if (op.has_aux()) {
        value *= GeluDerivative(Element(type, op.aux, aux_at));
      }
      SetElement(type, call.d, column * call.d_layout.stride + row, value);
    }
  }
}

}  // namespace zg::emulation
