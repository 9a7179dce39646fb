#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/resample_map.h"

namespace zg::cuda {
namespace {

// The elements [begin, end) of x, or of dy, along one dim from which an element is computed.
template <bool kIsGradient>
struct Taps {
  __device__ Taps(const ResampleMap& map, int64_t at) : map(map), at(at) {
    if (!kIsGradient) {
      begin = map.Begin(at);
      end = map.End(at);
      return;
    }
    begin = end = map.FirstOf(at);
    while (end < map.out && map.Begin(end) <= at) ++end;
  }
  __device__ float Weight(int64_t i) const {
    return kIsGradient ? map.Weight(i, at) : map.Weight(at, i);
  }
  const ResampleMap& map;
  int64_t at;
  int64_t begin;
  int64_t end;
};

template <bool kIsGradient, typename T>
struct ResampleBody {
  const T* x;
  T* y;
  ResampleMap rows;
  ResampleMap columns;

  template <int kCount>
  __device__ void Run(int64_t index) const {
    const int64_t height = kIsGradient ? rows.in : rows.out;
    const int64_t width = kIsGradient ? columns.in : columns.out;
    const int64_t source_height = kIsGradient ? rows.out : rows.in;
    const int64_t source_width = kIsGradient ? columns.out : columns.in;
    const T* const plane = x + index / (height * width) * source_height * source_width;
    const Taps<kIsGradient> of_rows(rows, index / width % height);
    const Taps<kIsGradient> of_columns(columns, index % width);
    float sum = 0.0f;
    for (int64_t w = of_columns.begin; w < of_columns.end; ++w) {
      float column = 0.0f;
      for (int64_t h = of_rows.begin; h < of_rows.end; ++h) {
        column += of_rows.Weight(h) * Widen(plane[h * source_width + w]);
      }
      sum += of_columns.Weight(w) * column;
    }
    y[index] = Round<T>(sum);
  }
};

template <bool kIsGradient>
class Resample : public Kernel {
 public:
  explicit Resample(const KernelSpec& spec)
      : type_(spec.outputs[0]), rows_(MakeMap(spec, 0)), columns_(MakeMap(spec, 1)) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const ResampleBody<kIsGradient, T> body = {arguments.input<T>(0), arguments.output<T>(0),
                                                 rows_, columns_};
      return RunPacks<1>(body, true, type_.shape.num_elements(), arguments.stream);
    });
  }

 private:
  static ResampleMap MakeMap(const KernelSpec& spec, int i) {
    const int64_t source = spec.call.inputs[0].shape.dim(2 + i);
    const int64_t result = spec.outputs[0].shape.dim(2 + i);
    return ResampleMap(spec.call.attributes, i, kIsGradient ? result : source,
                       kIsGradient ? source : result);
  }

  const TensorType type_;
  const ResampleMap rows_;
  const ResampleMap columns_;
};

}  // namespace

void RegisterResampleKernels(KernelRegistry& registry) {
  registry.Register("resample2d", MakeKernel<Resample<false>>);
  registry.Register("resample2d_grad", MakeKernel<Resample<true>>);
}

}  // namespace zg::cuda
