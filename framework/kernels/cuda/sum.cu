#include <algorithm>
#include <vector>

#include "framework/kernels/cuda/column_sum.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/warp_rows.cuh"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/strided_dims.h"
#include "framework/kernels/sum_stages.h"

namespace zg::cuda {
namespace {

// y[o, i] = factor * sum over s of x[o, s, i]. If the summed dim is the last, a warp processes a
// row.
template <typename In, typename Out>
__global__ void SumRowsKernel(const In* x, Out* y, int64_t rows, int64_t summed, float factor) {
  const int64_t row = RowOfWarp();
  if (row >= rows) return;
  float sum = 0.0f;
  for (int64_t s = threadIdx.x % kWarp; s < summed; s += kWarp) sum += Widen(x[row * summed + s]);
  sum = WarpSum(sum);
  if (threadIdx.x % kWarp == 0) y[row] = Round<Out>(sum * factor);
}

// A thread processes a column of one of the matrices.
template <typename In, typename Out>
__global__ void SumColumnsKernel(const In* x, Out* y, SumStage stage, float factor) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= stage.outer * stage.inner) return;
  const int64_t outer = index / stage.inner;
  const In* const column = x + outer * stage.summed * stage.inner + index % stage.inner;
  float sum = 0.0f;
  for (int64_t s = 0; s < stage.summed; ++s) sum += Widen(column[s * stage.inner]);
  y[index] = Round<Out>(sum * factor);
}

int64_t Aligned(int64_t bytes) { return CeilDivide(bytes, 64) * 64; }

class Sum : public Kernel {
 public:
  explicit Sum(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        stages_(SumStages(spec.call.inputs[0].shape, spec.call.attributes.Ints("dims"))),
        factor_(static_cast<float>(spec.call.attributes.Float("factor"))) {}

  int64_t workspace_bytes() const override {
    int64_t partial = 0;
    for (const SumStage& stage : stages_) {
      partial = std::max(partial, ColumnSumWorkspace({stage.summed, stage.inner}, 1));
    }
    return 2 * SumsBytes() + partial;
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      if (stages_.size() == 1) {
        return RunStage(stages_[0], arguments.input<T>(0), arguments.output<T>(0), factor_,
                        arguments);
      }
      char* const workspace = static_cast<char*>(arguments.workspace);
      float* sums = reinterpret_cast<float*>(workspace);
      ZG_RETURN_IF_ERROR(RunStage(stages_[0], arguments.input<T>(0), sums, 1.0f, arguments));
      for (size_t i = 1; i + 1 < stages_.size(); ++i) {
        float* const next = reinterpret_cast<float*>(workspace + i % 2 * SumsBytes());
        ZG_RETURN_IF_ERROR(RunStage(stages_[i], sums, next, 1.0f, arguments));
        sums = next;
      }
      return RunStage(stages_.back(), sums, arguments.output<T>(0), factor_, arguments);
    });
  }

 private:
  template <typename In, typename Out>
  Status RunStage(const SumStage& stage, const In* x, Out* y, float factor,
                  const KernelArguments& arguments) const {
    if (stage.outer == 1 && factor == 1.0f) {
      constexpr int kPack = kPackOf<In>;
      const MatrixShape shape = {stage.summed, stage.inner};
      return SumColumns<kPack>(ElementTerms<In>{x, stage.inner}, shape,
                               stage.inner % kPack == 0 && AreAligned(16, x),
                               static_cast<char*>(arguments.workspace) + 2 * SumsBytes(),
                               ColumnSumOutputs<Out, 1>{{y}}, arguments.stream);
    }
    if (stage.inner == 1) {
      return Launch(SumRowsKernel<In, Out>, WarpPerRow(stage.outer), arguments.stream, x, y,
                    stage.outer, stage.summed, factor);
    }
    return Launch(SumColumnsKernel<In, Out>, Threads(stage.outer * stage.inner), arguments.stream,
                  x, y, stage, factor);
  }

  // The bytes that one stage leaves to the next.
  int64_t SumsBytes() const {
    if (stages_.size() == 1) return 0;
    return Aligned(stages_[0].outer * stages_[0].inner * static_cast<int64_t>(sizeof(float)));
  }

  const DType dtype_;
  const std::vector<SumStage> stages_;
  const float factor_;
};

template <typename T>
struct ExpandBody {
  const T* x;
  T* y;
  float factor;
  StridedDims<1> dims;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    Floats<kCount> values;
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = factor * Widen(x[dims.OffsetOf(0, begin + i)]);
    StoreFloats(values, y + begin);
  }
};

// For i64 and bool.
template <typename T>
struct RepeatBody {
  const T* x;
  T* y;
  StridedDims<1> dims;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) y[begin + i] = x[dims.OffsetOf(0, begin + i)];
  }
};

class Expand : public Kernel {
 public:
  explicit Expand(const KernelSpec& spec)
      : type_(spec.outputs[0]),
        factor_(static_cast<float>(spec.call.attributes.Float("factor"))),
        dims_(ExpandDims(spec.call.inputs[0].shape, spec.outputs[0].shape,
                         spec.call.attributes.Ints("dims"),
                         spec.call.attributes.Bool("keep_dims"))) {}

  Status Run(const KernelArguments& arguments) override {
    if (!IsFloat(type_.dtype)) {
      return WithElements(SizeOf(type_.dtype), [&](auto zero) {
        using T = decltype(zero);
        const RepeatBody<T> body = {arguments.input<T>(0), arguments.output<T>(0), dims_};
        return RunPacks<1>(body, true, type_.shape.num_elements(), arguments.stream);
      });
    }
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const ExpandBody<T> body = {arguments.input<T>(0), arguments.output<T>(0), factor_, dims_};
      return RunPacks<kPackOf<T>>(body, AreAligned(16, body.y), type_.shape.num_elements(),
                                  arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const float factor_;
  const StridedDims<1> dims_;
};

}  // namespace

void RegisterSumKernels(KernelRegistry& registry) {
  registry.Register("sum", MakeKernel<Sum>);
  registry.Register("expand", MakeKernel<Expand>);
}

}  // namespace zg::cuda
