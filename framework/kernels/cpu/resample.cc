#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
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

// sum[i] += weight x[i]
template <typename T>
void AddScaled(const T* x, float weight, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) sum[i] += weight * ToF32(x[i]);
  });
}

// First combines rows, then the elements of the combined row.
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
  int64_t BytesOfThread() const { return source_columns_ * static_cast<int64_t>(sizeof(float)); }

  void RunPlanes(const KernelArguments& arguments, int64_t begin, int64_t end,
                 void* workspace) const {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      float* const row = static_cast<float*>(workspace);
      const T* x = arguments.input<T>(0) + begin * source_rows_ * source_columns_;
      T* y = arguments.output<T>(0) + begin * result_pixels();
      for (int64_t plane = begin; plane < end; ++plane, x += source_rows_ * source_columns_) {
        for (const Taps::Range& rows : taps_[0].ranges) {
          std::fill_n(row, source_columns_, 0.0f);
          for (int64_t i = 0; i < rows.count; ++i) {
            AddScaled(x + (rows.source + i) * source_columns_, taps_[0].weights[rows.weight + i],
                      source_columns_, row);
          }
          for (const Taps::Range& columns : taps_[1].ranges) {
            float sum = 0.0f;
            for (int64_t i = 0; i < columns.count; ++i) {
              sum += taps_[1].weights[columns.weight + i] * row[columns.source + i];
            }
            *y++ = FromF32<T>(sum);
          }
        }
      }
    });
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
