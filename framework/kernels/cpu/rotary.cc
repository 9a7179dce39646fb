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

void FindTurns(const float* frequencies, float position, int64_t count, float scale, float* cosines,
               float* sines) {
  Multiversion([=]() ZG_VERSION {
    using elementwise::Abs, elementwise::kFarAngle;
    int32_t num_far = 0;
    for (int64_t i = 0; i < count; ++i) {
      num_far += static_cast<int32_t>(!(Abs(position * frequencies[i]) < kFarAngle));
    }
    if (num_far > 0) {
      for (int64_t i = 0; i < count; ++i) {
        cosines[i] = elementwise::Cos(position * frequencies[i]) * scale;
        sines[i] = elementwise::Sin(position * frequencies[i]) * scale;
      }
      return;
    }
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      cosines[i] = elementwise::NearCos(position * frequencies[i]) * scale;
    }
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      sines[i] = elementwise::NearSin(position * frequencies[i]) * scale;
    }
  });
}

// Turns the pairs of the heads of one position, and copies the other channels. The elements of a pair are
// neighbours, or as many apart as there are pairs.
template <bool kInterleaved, typename T>
void TurnHeads(const T* x, const float* cosines, const float* sines, int64_t size, int64_t pairs,
               int64_t heads, T* y) {
  Multiversion([=]() ZG_VERSION {
    const int64_t step = kInterleaved ? 2 : 1;
    const int64_t distance = kInterleaved ? 1 : pairs;
    for (int64_t first = 0; first < heads * size; first += size) {
      ZG_INDEPENDENT
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t at = first + i * step;
        const float a = ToF32(x[at]);
        const float b = ToF32(x[at + distance]);
        y[at] = FromF32<T>(a * cosines[i] - b * sines[i]);
        y[at + distance] = FromF32<T>(b * cosines[i] + a * sines[i]);
      }
      ZG_INDEPENDENT
      for (int64_t c = first + 2 * pairs; c < first + size; ++c) y[c] = x[c];
    }
  });
}

// Neighbouring positions that are turned one after the other, before those of the next sample: the
// processor fetches long runs ahead.
constexpr int64_t kPositions = 16;

class Rotary : public Kernel {
 public:
  explicit Rotary(const KernelSpec& spec)
      : call_(spec.call), pairs_(call_.rotated / 2), threads_(spec.threads) {}

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
  // The cosines and sines of kPositions.
  int64_t BytesOfThread() const {
    return kPositions * 2 * pairs_ * static_cast<int64_t>(sizeof(float));
  }

  void RunTimes(const KernelArguments& arguments, int64_t begin, int64_t end,
                void* workspace) const {
    const int64_t* const positions = call_.has_positions ? arguments.input<int64_t>(1) : nullptr;
    const bool shared = call_.batch_stride == 0;
    for (int64_t first = begin; first < end; first += kPositions) {
      for (int64_t b = 0; b < call_.batch; ++b) {
        float* cosines = static_cast<float*>(workspace);
        for (int64_t t = first; t < std::min(first + kPositions, end); ++t) {
          float* const sines = cosines + pairs_;
          if (b == 0 || !shared) {
            int64_t position = call_.time_stride == 0 ? t : 0;
            if (positions != nullptr) {
              position += positions[b * call_.batch_stride + t * call_.time_stride];
            }
            FindTurns(call_.frequencies.data(), static_cast<float>(position), pairs_, call_.scale,
                      cosines, sines);
          }
          TurnPosition(arguments, (b * call_.time + t) * call_.heads * call_.head_size, cosines,
                       sines);
          cosines += 2 * pairs_;
        }
      }
    }
  }

  void TurnPosition(const KernelArguments& arguments, int64_t offset, const float* cosines,
                    const float* sines) const {
    WithFloatType(call_.x.dtype, [&](auto zero) {
      using T = decltype(zero);
      const T* const x = arguments.input<T>(0) + offset;
      T* const y = arguments.output<T>(0) + offset;
      const auto turn = call_.interleaved ? TurnHeads<true, T> : TurnHeads<false, T>;
      turn(x, cosines, sines, call_.head_size, pairs_, call_.heads, y);
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
