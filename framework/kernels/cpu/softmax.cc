#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {
namespace {

// Processes rows in f32; the result may be an operand.
using RowFunction = void (*)(const float* first, const float* second, int64_t count, float* out);

ZG_INLINE float SumOfRow(const float* row, int64_t count) {
  return SumTerms(
      count, [=](const auto& load) __attribute__((always_inline)) { return load(row, 0.0f); });
}

void SoftmaxRow(const float* x, const float*, int64_t count, float* y) {
  Multiversion([=]() ZG_VERSION {
    const float largest = MaximumOf(x, count);
    for (int64_t run = 0; run < count; run += kPrefetchRun) {
      const int64_t end = std::min(run + kPrefetchRun, count);
      PrefetchRow<0>(x + count + run, end - run);  // the next row
      PrefetchRow<1>(y + run + kPrefetchAhead, end - run);
      ZG_INDEPENDENT
      for (int64_t i = run; i < end; ++i) y[i] = ExpOfNotHigh(x[i] - largest);
    }
    const float factor = 1.0f / SumOfRow(y, count);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] *= factor;
  });
}

void SoftmaxGradRow(const float* dy, const float* y, int64_t count, float* dx) {
  Multiversion([=]() ZG_VERSION {
    const float dot = SumTerms(
        count, [=](const auto& load)
                   __attribute__((always_inline)) { return load(dy, 0.0f) * load(y, 0.0f); });
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) dx[i] = y[i] * (dy[i] - dot);
  });
}

// The sum of exponentials is computed in blocks, so that x is not overwritten.
void LogSoftmaxRow(const float* x, const float*, int64_t count, float* y) {
  Multiversion([=]() ZG_VERSION {
    constexpr int64_t kBlock = 1024;
    float block[kBlock];
    const float largest = MaximumOf(x, count);
    float sum = 0.0f;
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t size = std::min(kBlock, count - begin);
      for (int64_t run = 0; run < size; run += kPrefetchRun) {
        const int64_t end = std::min(run + kPrefetchRun, size);
        PrefetchRow<0>(x + count + begin + run, end - run);  // the next row
        PrefetchRow<1>(y + begin + run, end - run);
        ZG_INDEPENDENT
        for (int64_t i = run; i < end; ++i) block[i] = ExpOfNotHigh(x[begin + i] - largest);
      }
      sum += SumOfRow(block, size);
    }
    const float shift = largest + Log<Fused>(sum);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] - shift;
  });
}

void LogSoftmaxGradRow(const float* dy, const float* y, int64_t count, float* dx) {
  Multiversion([=]() ZG_VERSION {
    const float sum = SumOfRow(dy, count);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] - ExpOfNotHigh(y[i]) * sum;
  });
}

// Rows of 16 bits are widened, and their results rounded.
class RowKernel : public Kernel {
 public:
  RowKernel(const KernelSpec& spec, RowFunction run)
      : dtype_(spec.outputs[0].dtype),
        shape_(AsMatrix(spec.outputs[0].shape)),
        num_inputs_(static_cast<int>(spec.call.inputs.size())),
        run_(run),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return WorkspaceBytes(NumSharing(threads_, shape_.rows, 1, Cost()), 2 * RowBytes());
  }

  Status Run(const KernelArguments& arguments) override {
    if (shape_.columns == 0) return Status::Ok();
    ForRanges(
        arguments.threads, shape_.rows, 1, Cost(), [&](int64_t begin, int64_t end, int thread) {
          RunRows(arguments, begin, end, WorkspaceOf(thread, arguments.workspace, 2 * RowBytes()));
        });
    return Status::Ok();
  }

 private:
  int64_t Cost() const { return 4 * shape_.columns; }  // exponentials

  void RunRows(const KernelArguments& arguments, int64_t begin, int64_t end,
               void* workspace) const {
    const int64_t bytes = shape_.columns * SizeOf(dtype_);
    float* const rows[] = {static_cast<float*>(workspace),
                           reinterpret_cast<float*>(static_cast<char*>(workspace) + RowBytes())};
    for (int64_t row = begin; row < end; ++row) {
      const void* const first = arguments.input<char>(0) + row * bytes;
      const void* const second = arguments.input<char>(num_inputs_ - 1) + row * bytes;
      void* const out = arguments.output<char>(0) + row * bytes;
      if (dtype_ == DType::kF32) {
        run_(static_cast<const float*>(first), static_cast<const float*>(second), shape_.columns,
             static_cast<float*>(out));
        continue;
      }
      ConvertFloats(dtype_, first, DType::kF32, rows[0], shape_.columns);
      if (num_inputs_ == 2) ConvertFloats(dtype_, second, DType::kF32, rows[1], shape_.columns);
      run_(rows[0], rows[1], shape_.columns, rows[0]);
      ConvertFloats(DType::kF32, rows[0], dtype_, out, shape_.columns);
    }
  }

  int64_t RowBytes() const {
    return (shape_.columns * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
  }

  const DType dtype_;
  const MatrixShape shape_;
  const int num_inputs_;
  const RowFunction run_;
  const int threads_;
};

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  registry.Register("softmax", MakeKernel<RowKernel, SoftmaxRow>);
  registry.Register("softmax_grad", MakeKernel<RowKernel, SoftmaxGradRow>);
  registry.Register("log_softmax", MakeKernel<RowKernel, LogSoftmaxRow>);
  registry.Register("log_softmax_grad", MakeKernel<RowKernel, LogSoftmaxGradRow>);
}

}  // namespace zg
