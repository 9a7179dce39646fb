// How the kernels of attention take parts of their workspace.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/attention_blocks.h"
#include "framework/kernels/cpu/gemm_tile.h"

namespace zg {

// Takes parts of the workspace, each aligned to a cache line; of none, finds how large it must be.
class Carver {
 public:
  explicit Carver(void* workspace) : workspace_(static_cast<float*>(workspace)) {}
  float* Take(int64_t floats) {
    float* const part = workspace_ == nullptr ? nullptr : workspace_ + used_;
    used_ += RoundUp(floats, kLineFloats);
    return part;
  }
  // Where scores go in the operands' dtype: in f32 they stay.
  float* TakeRounded(const AttentionShape& shape, float* scores) {
    return shape.dtype == DType::kF32 ? scores : Take(shape.scores_size() / 2);
  }
  int64_t bytes() const { return used_ * static_cast<int64_t>(sizeof(float)); }

 private:
  float* workspace_;
  int64_t used_ = 0;
};

// Scratch of a kernel's Scratch(shape, carver).
template <typename Scratch>
int64_t ScratchBytes(const AttentionShape& shape) {
  Carver carver(nullptr);
  const Scratch scratch(shape, carver);
  return carver.bytes();
}

inline int64_t DropoutBitsSize(const AttentionShape& shape) {
  return shape.dropout > 0 ? shape.keys : 0;
}

}  // namespace zg
