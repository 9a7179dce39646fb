#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/column_sum.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/gather_elements.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/strided_dims.h"
#include "framework/kernels/sum_stages.h"

namespace zg {
namespace {

// One stage after the other, the last group of summed dims first; intermediate results are in f32.
class Sum : public Kernel {
 public:
  explicit Sum(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        stages_(SumStages(spec.call.inputs[0].shape, spec.call.attributes.Ints("dims"))),
        factor_(static_cast<float>(spec.call.attributes.Float("factor"))),
        scale_(FunctionOf(ElementwiseCode::kScale, DType::kF32)) {}

  int64_t workspace_bytes() const override { return 2 * BufferBytes(); }

  Status Run(const KernelArguments& arguments) override {
    char* const workspace = static_cast<char*>(arguments.workspace);
    DType from = dtype_;
    const void* x = arguments.inputs[0];
    for (size_t i = 0; i < stages_.size(); ++i) {
      const bool is_result = i + 1 == stages_.size() && dtype_ == DType::kF32;
      void* const sums = is_result ? arguments.outputs[0] : workspace + i % 2 * BufferBytes();
      RunStage(stages_[i], from, x, static_cast<float*>(sums), arguments.threads);
      x = sums;
      from = DType::kF32;
    }
    float* const sums = static_cast<float*>(const_cast<void*>(x));
    const int64_t count = stages_.back().outer * stages_.back().inner;
    const void* const operand[] = {sums};
    if (factor_ != 1.0f) scale_(operand, factor_, count, sums);
    if (dtype_ != DType::kF32) {
      ConvertFloats(DType::kF32, sums, dtype_, arguments.outputs[0], count);
    }
    return Status::Ok();
  }

 private:
  static void RunStage(const SumStage& stage, DType dtype, const void* x, float* sums,
                       Threads* threads) {
    const int64_t cost = stage.summed * stage.inner;
    const auto run = [&](int64_t outer, Threads* of_columns) {
      ColumnSumToF32(dtype, static_cast<const char*>(x) + outer * cost * SizeOf(dtype),
                     stage.summed, stage.inner, sums + outer * stage.inner, of_columns);
    };
    if (stage.outer == 1) return run(0, threads);
    ForRanges(threads, stage.outer, 1, cost, [&](int64_t begin, int64_t end, int) {
      if (stage.inner == 1 && stage.summed <= kShortRow) {
        const char* const from = static_cast<const char*>(x) + begin * cost * SizeOf(dtype);
        return ShortRowSumsToF32(dtype, from, end - begin, stage.summed, sums + begin);
      }
      for (int64_t outer = begin; outer < end; ++outer) run(outer, nullptr);
    });
  }

  int64_t BufferBytes() const {
    if (stages_.size() == 1 && dtype_ == DType::kF32) return 0;
    const int64_t bytes = stages_[0].outer * stages_[0].inner * static_cast<int64_t>(sizeof(float));
    return (bytes + 63) / 64 * 64;
  }

  const DType dtype_;
  const std::vector<SumStage> stages_;
  const float factor_;
  const ElementwiseFunction scale_;
};

class Expand : public Kernel {
 public:
  explicit Expand(const KernelSpec& spec)
      : num_elements_(spec.outputs[0].shape.num_elements()),
        element_bytes_(SizeOf(spec.outputs[0].dtype)),
        factor_(static_cast<float>(spec.call.attributes.Float("factor"))),
        scale_(FunctionOf(ElementwiseCode::kScale, spec.outputs[0].dtype)),
        dims_(ExpandDims(spec.call.inputs[0].shape, spec.outputs[0].shape,
                         spec.call.attributes.Ints("dims"),
                         spec.call.attributes.Bool("keep_dims"))) {}

  Status Run(const KernelArguments& arguments) override {
    char* const y = arguments.output<char>(0);
    const auto run = [&](int64_t first, int64_t end, int) {
      for (int64_t begin = first; begin < end; begin += kElementwiseBlock) {
        const int64_t count = std::min(kElementwiseBlock, end - begin);
        char* const block = y + begin * element_bytes_;
        WithElements(element_bytes_, [&](auto zero) {
          using T = decltype(zero);
          GatherElements(dims_, 0, arguments.input<T>(0), begin, count,
                         reinterpret_cast<T*>(block));
        });
        const void* const operand[] = {block};
        if (factor_ != 1.0f) scale_(operand, factor_, count, block);
      }
    };
    ForRanges(arguments.threads, num_elements_, kElementUnit, 1, run);
    return Status::Ok();
  }

 private:
  const int64_t num_elements_;
  const int64_t element_bytes_;
  const float factor_;
  const ElementwiseFunction scale_;
  const StridedDims<1> dims_;
};

}  // namespace

void RegisterSumKernels(KernelRegistry& registry) {
  registry.Register("sum", MakeKernel<Sum>);
  registry.Register("expand", MakeKernel<Expand>);
}

}  // namespace zg
