#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/kernels/rotary_call.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

void FindTurns(const float* frequencies, float position, int64_t count, float* cosines,
               float* sines) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) cosines[i] = elementwise::Cos(position * frequencies[i]);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) sines[i] = elementwise::Sin(position * frequencies[i]);
  });
}

// The elements of a pair are `distance` apart, and neighbouring pairs are `step` apart.
template <int kStep, typename T>
void Turn(const T* x, const float* cosines, const float* sines, int64_t count, int64_t distance,
          T* y) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const float a = ToF32(x[i * kStep]);
      const float b = ToF32(x[i * kStep + distance]);
      y[i * kStep] = FromF32<T>(a * cosines[i] - b * sines[i]);
      y[i * kStep + distance] = FromF32<T>(b * cosines[i] + a * sines[i]);
    }
  });
}

class Rotary : public Kernel {
 public:
  explicit Rotary(const KernelSpec& spec)
      : call_(spec.call), pairs_(call_.head_size / 2), threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, call_.time, 1, Cost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, call_.time, 1, Cost(),
              [&](int64_t begin, int64_t end, int thread) {
                RunTimes(arguments, begin, end,
                         WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
              });
    return Status::Ok();
  }

 private:
  int64_t Cost() const { return 2 * call_.batch * call_.heads * call_.head_size; }
  // The cosines and sines of one position.
  int64_t BytesOfThread() const { return call_.head_size * static_cast<int64_t>(sizeof(float)); }

  void RunTimes(const KernelArguments& arguments, int64_t begin, int64_t end,
                void* workspace) const {
    float* const cosines = static_cast<float*>(workspace);
    float* const sines = cosines + pairs_;
    const int64_t* const positions = call_.has_positions ? arguments.input<int64_t>(1) : nullptr;
    const bool shared = call_.batch_stride == 0;
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t b = 0; b < call_.batch; ++b) {
        if (b == 0 || !shared) {
          int64_t position = call_.time_stride == 0 ? t : 0;
          if (positions != nullptr) {
            position += positions[b * call_.batch_stride + t * call_.time_stride];
          }
          FindTurns(call_.frequencies.data(), static_cast<float>(position), pairs_, cosines, sines);
        }
        TurnHeads(arguments, (b * call_.time + t) * call_.heads * call_.head_size, cosines, sines);
      }
    }
  }

  void TurnHeads(const KernelArguments& arguments, int64_t offset, const float* cosines,
                 const float* sines) const {
    WithFloatType(call_.x.dtype, [&](auto zero) {
      using T = decltype(zero);
      const T* const x = arguments.input<T>(0) + offset;
      T* const y = arguments.output<T>(0) + offset;
      for (int64_t i = 0; i < call_.heads * call_.head_size; i += call_.head_size) {
        if (call_.interleaved) {
          Turn<2>(x + i, cosines, sines, pairs_, 1, y + i);
        } else {
          Turn<1>(x + i, cosines, sines, pairs_, pairs_, y + i);
        }
      }
    });
  }

  const RotaryCall call_;
  const int64_t pairs_;
  const int threads_;
};

}  // namespace

void RegisterRotaryKernels(KernelRegistry& registry) {
  registry.Register("rotary", MakeKernel<Rotary>);
}

}  // namespace zg
