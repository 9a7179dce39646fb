// HalfGradWeight: what WindowGradWeight is, in bf16 on processors that multiply such: dy is a matrix
// (outputs, pixels) as it lies, the windows of x are copied out some channels at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/conv_shape.h"
#include "framework/kernels/cpu/half_windows.h"
#include "framework/kernels/cpu/image_windows.h"
#include "framework/kernels/cpu/window_grad_weight.h"

namespace zg {

class HalfGradWeight {
 public:
  // The dtype must have a HalfMethod.
  HalfGradWeight(const ConvShape& shape, const WeightRange& range, DType dtype);

  int64_t workspace_bytes() const { return layout_.end * static_cast<int64_t>(sizeof(float)); }
  // Each element is one chain of the method's products over samples and pixels in order.
  void Run(const void* dy, const void* x, void* dw, void* workspace) const;

 private:
  // Offsets of the parts of the workspace, in floats; padded copies of some samples of x come first.
  struct Layout {
    int64_t dy = 0;
    int64_t windows = 0;
    int64_t packed_dy = 0;
    int64_t packed_windows = 0;
    int64_t sums = 0;
    int64_t end = 0;
  };

  int64_t plane() const { return windows_.plane.floats(); }
  int64_t columns() const { return block_channels_ * shape_.taps(); }  // of a block of channels
  int64_t sum_stride() const { return RoundUp(columns(), method_.column_unit); }
  int64_t sums_of_block() const { return RoundUp(shape_.outputs, method_.row_unit) * sum_stride(); }

  void CopySamples(const BFloat16* x, int64_t first, int64_t samples, int64_t group,
                   BFloat16* copies) const;
  // dy of some samples, side by side in each row.
  StoredBlock RowsOfDy(const BFloat16* dy, int64_t first, int64_t samples, int64_t group,
                       BFloat16* copy) const;
  void Store(const float* sums, int64_t group, BFloat16* dw) const;

  const ConvShape shape_;
  const WeightRange range_;
  const GemmMethod& method_;
  const ImageWindows windows_;
  int64_t samples_ = 1;           // processed at once
  int64_t depth_ = 0;             // pixels multiplied at once, at most
  int64_t block_channels_ = 1;    // whose windows are copied at once
  std::vector<int64_t> rows_;     // of the matrix of windows, by channel and tap
  std::vector<int64_t> columns_;  // by sample and pixel
  int64_t run_ = 1;
  Layout layout_;
};

}  // namespace zg
