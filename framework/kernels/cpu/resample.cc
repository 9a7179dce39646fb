#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/transpose.h"
#include "framework/kernels/resample_map.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// The elements of one dim from which each element of the result is computed.
struct Taps {
  struct Range {
    int64_t source;  // the first element
    int64_t count;
    int64_t weight;  // the index of its weight
  };
  std::vector<Range> ranges;
  std::vector<float> weights;
};

Taps Forward(const ResampleMap& map) {
  Taps taps;
  for (int64_t i = 0; i < map.out; ++i) {
    taps.ranges.push_back({map.Begin(i), std::max<int64_t>(0, map.End(i) - map.Begin(i)),
                           static_cast<int64_t>(taps.weights.size())});
    for (int64_t at = map.Begin(i); at < map.End(i); ++at)
      taps.weights.push_back(map.Weight(i, at));
  }
  return taps;
}

Taps Backward(const ResampleMap& map) {
  Taps taps;
  for (int64_t at = 0; at < map.in; ++at) {
    const auto weight = static_cast<int64_t>(taps.weights.size());
    const int64_t first = map.FirstOf(at);
    for (int64_t i = first; i < map.out && map.Begin(i) <= at; ++i) {
      taps.weights.push_back(map.Weight(i, at));
    }
    taps.ranges.push_back({first, static_cast<int64_t>(taps.weights.size()) - weight, weight});
  }
  return taps;
}

// The combined row of one row of the result.
template <typename T>
ZG_INLINE void CombineRows(const T* x, const Taps::Range& rows, const float* weights,
                           int64_t columns, float* combined) {
  std::fill_n(combined, columns, 0.0f);
  for (int64_t i = 0; i < rows.count; ++i) {
    const T* const row = x + (rows.source + i) * columns;
    const float weight = weights[rows.weight + i];
    ZG_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j) combined[j] += weight * ToF32(row[j]);
  }
}

// Copies sixteen rows of `from`, whose columns become rows of `to`; strides in floats.
ZG_INLINE void TransposeRows(const float* from, int64_t stride, int64_t to_stride, int64_t columns,
                             float* to) {
  Lanes lanes[kLanes];
  for (int64_t j = 0; j < columns; j += kLanes) {
    for (int i = 0; i < kLanes; ++i) lanes[i] = LoadLanes(from + i * stride + j);
    Transpose(lanes);
    for (int i = 0; i < kLanes; ++i) StoreLanes(lanes[i], to + (j + i) * to_stride);
  }
}

// First combines rows, then the elements of the combined row: for sixteen rows of the result at
// once, of one or several planes, each in a lane.
template <bool kIsGradient>
class Resample : public Kernel {
 public:
  explicit Resample(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        planes_(spec.outputs[0].shape.dim(0) * spec.outputs[0].shape.dim(1)),
        source_rows_(spec.call.inputs[0].shape.dim(2)),
        source_columns_(spec.call.inputs[0].shape.dim(3)),
        threads_(spec.threads) {
    for (int i = 0; i < 2; ++i) {
      const int64_t source = spec.call.inputs[0].shape.dim(2 + i);
      const int64_t result = spec.outputs[0].shape.dim(2 + i);
      const ResampleMap map(spec.call.attributes, i, kIsGradient ? result : source,
                            kIsGradient ? source : result);
      taps_[i] = kIsGradient ? Backward(map) : Forward(map);
    }
  }

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, planes_, 1, Cost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, planes_, 1, Cost(), [&](int64_t begin, int64_t end, int thread) {
      RunPlanes(arguments, begin, end, WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
    });
    return Status::Ok();
  }

 private:
  int64_t result_pixels() const {
    return static_cast<int64_t>(taps_[0].ranges.size() * taps_[1].ranges.size());
  }
  // The cost of a plane.
  int64_t Cost() const { return 4 * (result_pixels() + source_rows_ * source_columns_); }
  int64_t result_columns() const { return static_cast<int64_t>(taps_[1].ranges.size()); }
  // Sixteen combined rows and sixteen rows of the result, each also column by column.
  int64_t BytesOfThread() const {
    return 2 * kLanes * (WholeLanes(source_columns_) + WholeLanes(result_columns())) *
           static_cast<int64_t>(sizeof(float));
  }

  void RunPlanes(const KernelArguments& arguments, int64_t begin, int64_t end,
                 void* workspace) const {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const auto height = static_cast<int64_t>(taps_[0].ranges.size());
      const T* const x = arguments.input<T>(0);
      T* const y = arguments.output<T>(0);
      float* const scratch = static_cast<float*>(workspace);
      Multiversion([=]() ZG_VERSION {
        for (int64_t row = begin * height; row < end * height; row += kLanes) {
          const int64_t count = std::min<int64_t>(kLanes, end * height - row);
          RunRows(x, row, count, scratch, y + row * result_columns());
        }
      });
    });
  }

  // Rows [first, first + count) of the result.
  template <typename T>
  ZG_INLINE void RunRows(const T* x, int64_t first, int64_t count, float* scratch, T* y) const {
    const auto height = static_cast<int64_t>(taps_[0].ranges.size());
    const int64_t width = result_columns();
    const int64_t row_size = WholeLanes(source_columns_);
    const int64_t result_size = WholeLanes(width);
    float* const rows = scratch;
    float* const columns = rows + kLanes * row_size;
    float* const sums = columns + kLanes * row_size;
    float* const results = sums + kLanes * result_size;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t plane = (first + i) / height;
      CombineRows(x + plane * source_rows_ * source_columns_,
                  taps_[0].ranges[first + i - plane * height], taps_[0].weights.data(),
                  source_columns_, rows + i * row_size);
    }
    TransposeRows(rows, row_size, kLanes, row_size, columns);
    const float* const weights = taps_[1].weights.data();
    for (int64_t j = 0; j < width; ++j) {
      const Taps::Range range = taps_[1].ranges[j];
      Lanes sum = {};
      for (int64_t i = 0; i < range.count; ++i) {
        sum += weights[range.weight + i] * LoadLanes(columns + (range.source + i) * kLanes);
      }
      StoreLanes(sum, sums + j * kLanes);
    }
    for (int64_t j = 0; j < width; j += kLanes) {
      TransposeRows(sums + j * kLanes, kLanes, result_size, kLanes, results + j);
    }
    for (int64_t i = 0; i < count; ++i) {
      const float* const from = results + i * result_size;
      T* const to = y + i * width;
      ZG_INDEPENDENT
      for (int64_t j = 0; j < width; ++j) to[j] = FromF32<T>(from[j]);
    }
  }

  const DType dtype_;
  const int64_t planes_;
  const int64_t source_rows_;
  const int64_t source_columns_;
  const int threads_;
  Taps taps_[2];  // of rows and of columns
};

}  // namespace

void RegisterResampleKernels(KernelRegistry& registry) {
  registry.Register("resample2d", MakeKernel<Resample<false>>);
  registry.Register("resample2d_grad", MakeKernel<Resample<true>>);
}

}  // namespace zg
