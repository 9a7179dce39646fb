#include <type_traits>

#include "framework/kernels/cuda/dim_path.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/linear_recurrence_math.h"

namespace zg::cuda {
namespace {

// A thread computes a recurrence. h may be decay or x.
template <bool kLeaving, typename T>
struct RecurrenceBody {
  const T* decay;
  const T* x;
  T* h;
  DimPath path;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      float state = 0.0f;
      int64_t at = path.First(begin + c);
      for (int64_t i = 0; i < path.size; ++i, at += path.Step()) {
        h[at] = Round<T>(NextOfRecurrence<kLeaving>(Widen(decay[at]), Widen(x[at]), state));
      }
    }
  }
};

// ddecay may be decay or h, and dx may be dh.
template <bool kLeaving, typename T>
struct RecurrenceGradBody {
  const T* dh;
  const T* decay;
  const T* h;
  T* ddecay;
  T* dx;
  DimPath path;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      float state = 0.0f;
      int64_t at = path.First(begin + c);
      for (int64_t i = 0; i < path.size; ++i, at += path.Step()) {
        float used = 0.0f;
        if (kLeaving || i + 1 < path.size) used = Widen(h[kLeaving ? at : at + path.Step()]);
        const RecurrenceGradients<float> next =
            NextOfRecurrenceGrad<kLeaving>(Widen(dh[at]), Widen(decay[at]), used, state);
        ddecay[at] = Round<T>(next.ddecay);
        dx[at] = Round<T>(next.dx);
      }
    }
  }
};

class Recurrences : public Kernel {
 public:
  Recurrences(const KernelSpec& spec, bool backwards)
      : dtype_(spec.outputs[0].dtype), leaving_(spec.call.attributes.Bool("leaving")) {
    const DimView view(spec.outputs[0].shape, spec.call.attributes.Int("dim"));
    path_ = {view.size, view.inner, spec.call.attributes.Bool("from_end") != backwards};
    count_ = view.outer * view.inner;
  }

 protected:
  // Calls f with a zero of the element type and whether the recurrence is one with `leaving`.
  template <typename F>
  Status WithKind(const F& f) const {
    return WithFloatType(dtype_, [&](auto zero) {
      return leaving_ ? f(zero, std::true_type()) : f(zero, std::false_type());
    });
  }

  const DType dtype_;
  const bool leaving_;
  DimPath path_;
  int64_t count_;
};

class LinearRecurrence : public Recurrences {
 public:
  explicit LinearRecurrence(const KernelSpec& spec) : Recurrences(spec, false) {}

  Status Run(const KernelArguments& arguments) override {
    return WithKind([&](auto zero, auto leaving) {
      using T = decltype(zero);
      const RecurrenceBody<decltype(leaving)::value, T> body = {
          arguments.input<T>(0), arguments.input<T>(1), arguments.output<T>(0), path_};
      return RunPacks<1>(body, true, count_, arguments.stream);
    });
  }
};

class LinearRecurrenceGrad : public Recurrences {
 public:
  explicit LinearRecurrenceGrad(const KernelSpec& spec) : Recurrences(spec, true) {}

  Status Run(const KernelArguments& arguments) override {
    return WithKind([&](auto zero, auto leaving) {
      using T = decltype(zero);
      const RecurrenceGradBody<decltype(leaving)::value, T> body = {
          arguments.input<T>(0),  arguments.input<T>(1),  arguments.input<T>(2),
          arguments.output<T>(0), arguments.output<T>(1), path_};
      return RunPacks<1>(body, true, count_, arguments.stream);
    });
  }
};

}  // namespace

void RegisterLinearRecurrenceKernels(KernelRegistry& registry) {
  registry.Register("linear_recurrence", MakeKernel<LinearRecurrence>);
  registry.Register("linear_recurrence_grad", MakeKernel<LinearRecurrenceGrad>);
}

}  // namespace zg::cuda
