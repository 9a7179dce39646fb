// WindowProduct: the products of a convolution's weights with the windows of images, which compute
// y from x, and dx from dy. Images are read in place, or from copies of a few of them with zeros
// around; the matrix of windows is never materialised, but for blocks of it in bf16, for processors that
// multiply such (half_windows.h).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/threads.h"
#include "framework/kernels/cpu/half_windows.h"
#include "framework/kernels/cpu/image_windows.h"
#include "framework/kernels/cpu/indexed_product.h"

namespace zg {

// The index of the weight of result channel m, source channel c and tap t of a group: m * by_result
// + c * by_source + t.
struct WeightStrides {
  int64_t by_result = 0;
  int64_t by_source = 0;

  // Whether the weights of a result channel at these taps lie one behind the other.
  bool FollowEachOther(const std::vector<int64_t>& taps) const {
    for (size_t tap = 0; tap < taps.size(); ++tap) {
      if (taps[tap] != static_cast<int64_t>(tap)) return false;
    }
    return by_source == static_cast<int64_t>(taps.size());
  }
};

struct WindowProductSizes {
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t source_channels = 0;  // per group, like the next
  int64_t result_channels = 0;
  WeightStrides weight;
  DType dtype = DType::kF32;
};

class WindowProduct {
 public:
  // For at most `threads`, which share the samples.
  WindowProduct(const WindowProductSizes& sizes, ImageWindows windows, int threads);

  int64_t workspace_bytes() const;
  // `source` (N, G source_channels, ...), `bias` (G result_channels) or null, `result` (N, G
  // result_channels, ...). Each element is one chain of fused multiply-adds, or of the method's
  // products of bf16, that starts from its bias, over ascending channels and taps.
  void Run(const void* source, const void* weight, const void* bias, void* result, void* workspace,
           Threads* threads) const;

 private:
  // The windows of phases that read the same elements, as a matrix. The product has a row for each
  // phase and result channel.
  struct Matrix {
    std::vector<size_t> phases;
    std::vector<int64_t> weights;  // of each row of the product: where its weights begin
    std::vector<int64_t> rows;     // by channel and tap
    std::vector<int64_t> columns;  // by sample and pixel
    int64_t run = 1;
    int64_t pixels = 0;  // of a phase

    int64_t depth() const { return static_cast<int64_t>(rows.size()); }
    int64_t product_rows() const { return static_cast<int64_t>(weights.size()); }
    int64_t padded_rows() const { return RoundUp(product_rows(), kTileRows); }
  };
  // Offsets of the parts of the workspace, in floats: the packed weights come first, then the
  // planes of each thread.
  struct Layout {
    int64_t weights = 0;
    int64_t sums = 0;
    int64_t panel = 0;   // or a block of windows
    int64_t packed = 0;  // such a block, as the method takes it
    int64_t end = 0;
  };

  // Whether sums are accumulated in the result itself.
  bool writes_result() const {
    return samples_ == 1 && windows_.phases.size() == 1 && sizes_.dtype == DType::kF32;
  }
  // Between the sums of two rows of a product.
  int64_t SumStride(const Matrix& matrix, int64_t samples) const;
  // Floats of a matrix's weights as they are packed.
  int64_t PackedWeights(const Matrix& matrix) const;
  Matrix MatrixOf(size_t phase) const;
  // Whether the product may compute this phase, too.
  bool Fits(const Matrix& matrix, size_t phase) const;
  void AddRows(size_t phase, Matrix* matrix) const;
  Layout MakeLayout() const;

  int64_t NumMultiplications() const;

  void PackWeights(const void* weight, int64_t group, float* packed, float* scratch,
                   Threads* threads) const;
  // Packs the rows [first, end) of a matrix's product, where `first` begins a tile.
  template <typename T>
  void PackRows(const Matrix& matrix, const T* weights_of_group, int64_t first, int64_t end,
                float* packed) const;
  // Packs a matrix's weights for the method; `scratch` is that of a thread.
  void PackHalves(const Matrix& matrix, const BFloat16* weights_of_group, float* scratch,
                  float* packed) const;
  // Runs the samples from `first` on.
  void RunSamples(const void* source, const float* packed, const void* bias, int64_t first,
                  int64_t group, void* result, float* scratch) const;
  // The source of some samples of a group, as the matrices index it.
  const void* Source(const void* source, int64_t first, int64_t samples, int64_t group,
                     float* planes) const;
  void RunMatrix(const Matrix& matrix, const float* weights, const void* source, int64_t samples,
                 const void* bias, int64_t group, float* sums, float* scratch) const;
  void MultiplyFloats(const Matrix& matrix, const float* weights, const float* source,
                      int64_t columns, bool continues, float* sums, float* panel) const;
  void MultiplyHalves(const Matrix& matrix, const float* weights, const BFloat16* source,
                      int64_t columns, bool continues, float* sums, float* scratch) const;
  void Store(const Matrix& matrix, const float* sums, int64_t first, int64_t samples, int64_t group,
             void* result) const;

  WindowProductSizes sizes_;
  ImageWindows windows_;
  const GemmMethod* method_;  // of bf16; null: products are of floats
  bool reads_source_;         // reads it in place
  int64_t samples_ = 1;       // processed at once
  int num_sharing_ = 1;
  std::vector<Matrix> matrices_;
  Layout layout_;
};

}  // namespace zg
