// WindowGradWeight: dw of a convolution, or a part of it: the products of dy with the windows of x
// over all pixels of a micro-batch. x is read from copies of a few samples in which the channels of
// a pixel are contiguous, with zeros around, so that the elements of all windows are runs of
// channels.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/conv_shape.h"
#include "framework/kernels/cpu/indexed_product.h"
#include "framework/tensor/dtype.h"

namespace zg {

// The weights of a range of groups and of a range of channels in each.
struct WeightRange {
  int64_t first_group = 0;
  int64_t end_group = 0;
  int64_t first_channel = 0;
  int64_t end_channel = 0;

  int64_t channels() const { return end_channel - first_channel; }
};

// The ranges that `threads` may share; a single one, if the work is small.
std::vector<WeightRange> SharedWeights(const ConvShape& shape, int threads);

class WindowGradWeight {
 public:
  WindowGradWeight(const ConvShape& shape, const WeightRange& range, DType dtype);

  int64_t workspace_bytes() const { return layout_.end * static_cast<int64_t>(sizeof(float)); }
  // Each element is one chain of fused multiply-adds over samples and pixels in order.
  void Run(const void* dy, const void* x, void* dw, void* workspace) const;

 private:
  // Offsets of the parts of the workspace, in floats; the copies of x come first.
  struct Layout {
    int64_t pieces = 0;
    int64_t panel = 0;
    int64_t sums = 0;
    int64_t end = 0;
  };

  int64_t padded_pixels() const { return plane_[0] * plane_[1]; }
  int64_t columns() const { return static_cast<int64_t>(columns_.size()); }

  void CopySamples(const void* x, int64_t first, int64_t samples, int64_t group,
                   float* copies) const;
  // Packs dy of the pixels [begin, begin + depth) of some samples; of whole samples if there are
  // several.
  void PackPieces(const void* dy, int64_t first, int64_t begin, int64_t depth, int64_t group,
                  float* pieces) const;
  void Store(const float* sums, int64_t group, void* dw) const;

  const ConvShape shape_;
  const WeightRange range_;
  const DType dtype_;
  int64_t plane_[2];              // sizes including the zeros
  int64_t samples_ = 1;           // processed at once
  std::vector<int64_t> rows_;     // of the matrix of windows, by sample and pixel
  std::vector<int64_t> columns_;  // by tap and channel
  int64_t run_ = 1;
  Layout layout_;
};

}  // namespace zg
