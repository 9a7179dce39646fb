#include "framework/kernels/cpu/window_product.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Minimum columns of a product: packing the weights' panels then costs little.
constexpr int64_t kColumns = 512;

// Rows of a product that computes several phases: it reads the windows once for all of them, and few
// result channels fill no tile of their own.
constexpr int64_t kMergedRows = 8 * kTileRows;

// Packs the weights [begin, end), counted by source channel and tap, of up to kTileRows rows, whose
// weights begin at `first`.
template <typename T>
void PackPiece(const T* weights, const WeightStrides& strides, const std::vector<int64_t>& taps,
               int64_t begin, int64_t end, const int64_t* first, int64_t rows, float* piece) {
  if (strides.FollowEachOther(taps)) {
    return PackPieces(weights + first[0] + begin, strides.by_result, end - begin, rows, piece);
  }
  const auto num_taps = static_cast<int64_t>(taps.size());
  const int64_t extent = first[rows - 1] - first[0] + num_taps;  // of a source channel
  int64_t channel = begin / num_taps;
  int64_t tap = begin % num_taps;
  for (int64_t k = begin; k < end; ++k, piece += kTileRows) {
    const T* const of_channel = weights + channel * strides.by_source;
    if (tap == 0) {
      PrefetchDistantRow(of_channel + first[0] + kRowsAhead * strides.by_source, extent);
    }
    const T* const from = of_channel + taps[tap];
    if (rows == kTileRows) {
      for (int64_t r = 0; r < kTileRows; ++r) piece[r] = ToF32(from[first[r]]);
    } else {
      for (int64_t r = 0; r < rows; ++r) piece[r] = ToF32(from[first[r]]);
    }
    if (++tap < num_taps) continue;
    tap = 0;
    ++channel;
  }
}

}  // namespace

WindowProduct::WindowProduct(const WindowProductSizes& sizes, ImageWindows windows, int threads)
    : sizes_(sizes),
      windows_(std::move(windows)),
      method_(HalfMethod(sizes.dtype)),
      reads_source_((sizes.dtype == DType::kF32 || method_ != nullptr) &&
                    windows_.plane.IsImage()) {
  int64_t most_pixels = 1;
  for (const WindowPhase& phase : windows_.phases) {
    most_pixels = std::max(most_pixels, static_cast<int64_t>(phase.windows.size()));
  }
  num_sharing_ = NumSharingProduct(threads, sizes.batch, 1, NumMultiplications());
  samples_ = std::max<int64_t>(
      1, std::min(CeilDiv(sizes.batch, num_sharing_), CeilDiv(kColumns, most_pixels)));
  for (size_t phase = 0; phase < windows_.phases.size(); ++phase) {
    const auto found = std::find_if(matrices_.begin(), matrices_.end(),
                                    [&](const Matrix& matrix) { return Fits(matrix, phase); });
    if (found == matrices_.end()) {
      matrices_.push_back(MatrixOf(phase));
    } else {
      AddRows(phase, &*found);
    }
  }
  layout_ = MakeLayout();
}

WindowProduct::Matrix WindowProduct::MatrixOf(size_t phase) const {
  const int64_t plane = windows_.plane.floats();
  const int64_t sample = plane * sizes_.source_channels * (reads_source_ ? sizes_.groups : 1);
  const WindowPhase& own = windows_.phases[phase];
  Matrix matrix;
  matrix.rows = own.RowsOf(sizes_.source_channels, plane);
  matrix.columns = own.ColumnsOf(samples_, sample);
  matrix.pixels = static_cast<int64_t>(own.windows.size());
  matrix.run = RunOf(matrix.columns, matrix.pixels);
  AddRows(phase, &matrix);
  return matrix;
}

bool WindowProduct::Fits(const Matrix& matrix, size_t phase) const {
  if (matrix.product_rows() + sizes_.result_channels > kMergedRows) return false;
  const WindowPhase& first = windows_.phases[matrix.phases[0]];
  const WindowPhase& own = windows_.phases[phase];
  if (own.offsets != first.offsets || own.windows != first.windows) return false;
  for (size_t i = 0; i < own.taps.size(); ++i) {
    if (own.taps[i] - own.taps[0] != first.taps[i] - first.taps[0]) return false;
  }
  return true;
}

void WindowProduct::AddRows(size_t phase, Matrix* matrix) const {
  matrix->phases.push_back(phase);
  const std::vector<int64_t>& first = windows_.phases[matrix->phases[0]].taps;
  const std::vector<int64_t>& own = windows_.phases[phase].taps;
  const int64_t begin = own.empty() ? 0 : own[0] - first[0];
  for (int64_t channel = 0; channel < sizes_.result_channels; ++channel) {
    matrix->weights.push_back(begin + channel * sizes_.weight.by_result);
  }
}

int64_t WindowProduct::SumStride(const Matrix& matrix, int64_t samples) const {
  const int64_t columns = samples * matrix.pixels;
  return method_ == nullptr ? columns : RoundUp(columns, method_->column_unit);
}

int64_t WindowProduct::PackedWeights(const Matrix& matrix) const {
  if (method_ == nullptr) return matrix.padded_rows() * matrix.depth();
  int64_t floats = 0;
  for (int64_t begin = 0; begin < matrix.depth(); begin += kHalfDepth) {
    floats +=
        method_->PackedASize(matrix.product_rows(), std::min(kHalfDepth, matrix.depth() - begin));
  }
  return floats;
}

WindowProduct::Layout WindowProduct::MakeLayout() const {
  int64_t weights = 0;
  int64_t sums = 0;
  int64_t panel = 0;
  int64_t packed = 0;
  for (const Matrix& matrix : matrices_) {
    weights += PackedWeights(matrix);
    const int64_t stride = SumStride(matrix, samples_);
    if (method_ == nullptr) {
      sums = std::max(sums, matrix.product_rows() * stride);
      panel = std::max(panel, IndexedPanelFloats(IndexedBlockDepth(matrix.depth())));
      continue;
    }
    const int64_t rows = RoundUp(matrix.product_rows(), method_->row_unit);
    const int64_t depth = std::min(kHalfDepth, matrix.depth());
    sums = std::max(sums, rows * stride);
    panel = std::max(panel, FloatsOfHalves(depth * std::max(stride, rows)));
    packed = std::max(packed, method_->PackedBSize(stride, depth));
  }
  int64_t planes = samples_ * sizes_.source_channels * windows_.plane.floats();
  if (method_ != nullptr) planes = FloatsOfHalves(planes);
  Layout layout;
  layout.weights = AlignedFloats(weights);
  layout.sums = reads_source_ ? 0 : AlignedFloats(planes);
  layout.panel = layout.sums + (writes_result() ? 0 : AlignedFloats(sums));
  layout.packed = layout.panel + AlignedFloats(panel);
  layout.end = layout.packed + packed;
  return layout;
}

int64_t WindowProduct::NumMultiplications() const {
  int64_t of_sample = 0;
  for (const WindowPhase& phase : windows_.phases) {
    of_sample += static_cast<int64_t>(phase.windows.size() * phase.taps.size());
  }
  return of_sample * sizes_.batch * sizes_.groups * sizes_.source_channels * sizes_.result_channels;
}

int64_t WindowProduct::workspace_bytes() const {
  constexpr int64_t kBytes = sizeof(float);
  return layout_.weights * kBytes + WorkspaceBytes(num_sharing_, layout_.end * kBytes);
}

void WindowProduct::PackWeights(const void* weight, int64_t group, float* packed, float* scratch,
                                Threads* threads) const {
  // Groups of weights are contiguous in both orders.
  const int64_t offset = group * std::max(sizes_.result_channels * sizes_.weight.by_result,
                                          sizes_.source_channels * sizes_.weight.by_source);
  WithFloatType(sizes_.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* const weights = static_cast<const T*>(weight) + offset;
    for (const Matrix& matrix : matrices_) {
      if constexpr (std::is_same_v<T, BFloat16>) {
        if (method_ != nullptr) {
          PackHalves(matrix, weights, scratch, packed);
          packed += PackedWeights(matrix);
          continue;
        }
      }
      ForRanges(
          threads, matrix.product_rows(), kTileRows, matrix.depth(),
          [&](int64_t begin, int64_t end, int) { PackRows(matrix, weights, begin, end, packed); });
      packed += PackedWeights(matrix);
    }
  });
}

template <typename T>
void WindowProduct::PackRows(const Matrix& matrix, const T* weights_of_group, int64_t first_row,
                             int64_t end_row, float* packed) const {
  const std::vector<int64_t>& taps = windows_.phases[matrix.phases[0]].taps;
  const int64_t block = IndexedBlockDepth(matrix.depth());
  for (int64_t begin = 0; begin < matrix.depth(); begin += block) {
    const int64_t end = std::min(begin + block, matrix.depth());
    for (int64_t row = first_row; row < end_row; row += kTileRows) {
      const int64_t rows = std::min(kTileRows, matrix.product_rows() - row);
      PackPiece(weights_of_group, sizes_.weight, taps, begin, end, matrix.weights.data() + row,
                rows, packed + matrix.padded_rows() * begin + row * (end - begin));
    }
  }
}

const void* WindowProduct::Source(const void* source, int64_t first, int64_t samples, int64_t group,
                                  float* planes) const {
  const PaddedPlane& plane = windows_.plane;
  const int64_t of_group = sizes_.source_channels * plane.in[0] * plane.in[1];
  const int64_t element_bytes = SizeOf(sizes_.dtype);
  for (int64_t i = 0; i < samples; ++i) {
    const char* const images = static_cast<const char*>(source) +
                               ((first + i) * sizes_.groups + group) * of_group * element_bytes;
    if (reads_source_) return images;
    const int64_t at = i * sizes_.source_channels * plane.floats();
    if (method_ != nullptr) {
      PadHalfPlanes(plane, reinterpret_cast<const BFloat16*>(images), sizes_.source_channels,
                    reinterpret_cast<BFloat16*>(planes) + at);
    } else {
      PadPlanes(plane, sizes_.dtype, images, sizes_.source_channels, planes + at);
    }
  }
  return planes;
}

void WindowProduct::RunMatrix(const Matrix& matrix, const float* weights, const void* source,
                              int64_t samples, const void* bias, int64_t group, float* sums,
                              float* scratch) const {
  const int64_t columns = samples * matrix.pixels;
  const int64_t stride = SumStride(matrix, samples);
  if (bias != nullptr) {
    WithFloatType(sizes_.dtype, [&](auto zero) {
      const auto* const of_group =
          static_cast<const decltype(zero)*>(bias) + group * sizes_.result_channels;
      for (int64_t row = 0; row < matrix.product_rows(); ++row) {
        const int64_t channel = row % sizes_.result_channels;
        std::fill_n(sums + row * stride, stride, ToF32(of_group[channel]));
      }
    });
  } else if (matrix.depth() == 0) {
    std::fill_n(sums, matrix.product_rows() * stride, 0.0f);
  }
  if (method_ == nullptr) {
    MultiplyFloats(matrix, weights, static_cast<const float*>(source), columns, bias != nullptr,
                   sums, scratch + layout_.panel);
  } else {
    MultiplyHalves(matrix, weights, static_cast<const BFloat16*>(source), columns, bias != nullptr,
                   sums, scratch);
  }
}

void WindowProduct::MultiplyFloats(const Matrix& matrix, const float* weights, const float* source,
                                   int64_t columns, bool continues, float* sums,
                                   float* panel) const {
  const int64_t block = IndexedBlockDepth(matrix.depth());
  for (int64_t begin = 0; begin < matrix.depth(); begin += block) {
    IndexedProduct product;
    product.a = weights + matrix.padded_rows() * begin;
    product.b = {source, matrix.rows.data() + begin, matrix.columns.data(), matrix.run};
    product.rows = matrix.product_rows();
    product.columns = columns;
    product.depth = std::min(block, matrix.depth() - begin);
    product.c = sums;
    product.c_stride = columns;
    product.continues = begin > 0 || continues;
    Multiply(product, panel);
  }
}

void WindowProduct::Store(const Matrix& matrix, const float* sums, int64_t first, int64_t samples,
                          int64_t group, void* result) const {
  const bool is_whole = windows_.phases.size() == 1;
  WithFloatType(sizes_.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t row = 0; row < matrix.product_rows(); ++row) {
      const float* of_row = sums + row * SumStride(matrix, samples);
      const size_t phase = matrix.phases[row / sizes_.result_channels];
      const std::vector<int64_t>& targets = windows_.phases[phase].pixels;
      const int64_t channel = row % sizes_.result_channels;
      for (int64_t i = 0; i < samples; ++i, of_row += matrix.pixels) {
        const int64_t plane =
            ((first + i) * sizes_.groups + group) * sizes_.result_channels + channel;
        T* const to = static_cast<T*>(result) + plane * windows_.result_pixels;
        if (is_whole) {
          ConvertFloats(DType::kF32, of_row, sizes_.dtype, to, matrix.pixels);
          continue;
        }
        for (int64_t p = 0; p < matrix.pixels; ++p) to[targets[p]] = FromF32<T>(of_row[p]);
      }
    }
  });
}

void WindowProduct::RunSamples(const void* source, const float* packed, const void* bias,
                               int64_t first, int64_t group, void* result, float* scratch) const {
  const int64_t samples = std::min(samples_, sizes_.batch - first);
  const void* const images = Source(source, first, samples, group, scratch);
  const float* weights = packed;
  for (const Matrix& matrix : matrices_) {
    float* sums = scratch + layout_.sums;
    if (writes_result()) {
      sums = static_cast<float*>(result) +
             (first * sizes_.groups + group) * sizes_.result_channels * windows_.result_pixels;
    }
    RunMatrix(matrix, weights, images, samples, bias, group, sums, scratch);
    if (!writes_result()) Store(matrix, sums, first, samples, group, result);
    weights += PackedWeights(matrix);
  }
}

void WindowProduct::Run(const void* source, const void* weight, const void* bias, void* result,
                        void* workspace, Threads* threads) const {
  float* const packed = static_cast<float*>(workspace);
  for (int64_t group = 0; group < sizes_.groups; ++group) {
    const auto scratch_of = [&](int thread) {
      return static_cast<float*>(WorkspaceOf(thread, packed + layout_.weights,
                                             layout_.end * static_cast<int64_t>(sizeof(float))));
    };
    PackWeights(weight, group, packed, scratch_of(0), threads);
    const auto run = [&](int64_t part, int thread) {
      std::optional<GemmScope> scope;
      if (method_ != nullptr) scope.emplace(*method_);
      RunSamples(source, packed, bias, part * samples_, group, result, scratch_of(thread));
    };
    const int64_t parts = CeilDiv(sizes_.batch, samples_);
    if (num_sharing_ > 1 && threads != nullptr) {
      threads->Run(parts, run);
    } else {
      for (int64_t part = 0; part < parts; ++part) run(part, 0);
    }
  }
}

}  // namespace zg
