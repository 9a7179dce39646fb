#include <algorithm>

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/rounding.cuh"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/kernels/rotary_call.h"

namespace zg::cuda {
namespace {

constexpr int64_t kMaxHeadSize = 512;

struct RotaryShape {
  int64_t time, heads, head_size, num_pairs;  // of all heads
  int64_t rotated;                            // channels of a head
  float scale;
  bool interleaved;
  int64_t batch_stride, time_stride;
  float frequencies[kMaxHeadSize / 2];
};

// A thread for each pair of channels; those that are not rotated are copied.
template <typename T>
__global__ void RotaryKernel(const T* x, const int64_t* positions, T* y, RotaryShape shape) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= shape.num_pairs) return;
  const int64_t pairs = shape.head_size / 2;
  const int64_t pair = index % pairs;
  const int64_t rotated_pairs = shape.rotated / 2;
  if (pair >= rotated_pairs) {
    const int64_t at = index / pairs * shape.head_size + 2 * pair;
    y[at] = x[at];
    y[at + 1] = x[at + 1];
    return;
  }
  const int64_t row = index / pairs / shape.heads;
  const int64_t t = row % shape.time;
  int64_t position = shape.time_stride == 0 ? t : 0;
  if (positions != nullptr) {
    position += positions[row / shape.time * shape.batch_stride + t * shape.time_stride];
  }
  const float angle = static_cast<float>(position) * shape.frequencies[pair];
  const float cosine = elementwise::Cos(angle) * shape.scale;
  const float sine = elementwise::Sin(angle) * shape.scale;
  const int64_t distance = shape.interleaved ? 1 : rotated_pairs;
  const int64_t at = index / pairs * shape.head_size + (shape.interleaved ? 2 * pair : pair);
  const float a = Widen(x[at]);
  const float b = Widen(x[at + distance]);
  y[at] = Round<T>(a * cosine - b * sine);
  y[at + distance] = Round<T>(b * cosine + a * sine);
}

class Rotary : public Kernel {
 public:
  explicit Rotary(const KernelSpec& spec) : call_(spec.call) {
    shape_ = {call_.time,  call_.heads,       call_.head_size,    x_elements() / 2,  call_.rotated,
              call_.scale, call_.interleaved, call_.batch_stride, call_.time_stride, {}};
    std::copy(call_.frequencies.begin(), call_.frequencies.end(), shape_.frequencies);
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(call_.x.dtype, [&](auto zero) {
      using T = decltype(zero);
      return Launch(RotaryKernel<T>, Threads(shape_.num_pairs), arguments.stream,
                    arguments.input<T>(0),
                    call_.has_positions ? arguments.input<int64_t>(1) : nullptr,
                    arguments.output<T>(0), shape_);
    });
  }

 private:
  int64_t x_elements() const { return call_.x.shape.num_elements(); }

  const RotaryCall call_;
  RotaryShape shape_;
};

StatusOr<std::unique_ptr<Kernel>> MakeRotary(const KernelSpec& spec) {
  if (const int64_t size = spec.call.attributes.Int("head_size"); size > kMaxHeadSize) {
    return InvalidArgument("{}: heads have {} channels, the CUDA kernel takes up to {}",
                           spec.call.op->name, size, kMaxHeadSize);
  }
  return MakeKernel<Rotary>(spec);
}

}  // namespace

void RegisterRotaryKernels(KernelRegistry& registry) { registry.Register("rotary", MakeRotary); }

}  // namespace zg::cuda
