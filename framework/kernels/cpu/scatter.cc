#include <algorithm>
#include <cstdint>
#include <string>

#include "framework/kernels/cpu/check_indices.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/any_element.h"
#include "framework/kernels/math/top_k_order.h"

namespace zg {
namespace {

// Positions of elements along a dim, for each place that an index sends elements to.
class ScatterPositions : public Kernel {
 protected:
  // The index is operand `index`.
  ScatterPositions(const KernelSpec& spec, int index)
      : op_(spec.call.op->name),
        index_(index),
        from_(spec.call.inputs[static_cast<size_t>(index)].shape, spec.call.attributes.Int("dim")),
        to_(spec.outputs[0].shape, spec.call.attributes.Int("dim")) {}

  // For each place, the last position that takes(at, before) lets replace the one before it, as
  // elements of the operands.
  template <typename F>
  Status Run(const KernelArguments& arguments, const F& takes) const {
    const int64_t* const index = arguments.input<int64_t>(index_);
    ZG_RETURN_IF_ERROR(CheckIndices(op_, index, from_.outer * from_.size * from_.inner, to_.size));
    const int64_t inner = from_.inner;
    const int64_t cost = 2 * (from_.size + to_.size) * inner;
    ForRanges(arguments.threads, from_.outer, 1, cost, [&](int64_t begin, int64_t end, int) {
      for (int64_t outer = begin; outer < end; ++outer) {
        int64_t* const positions = arguments.output<int64_t>(0) + outer * to_.size * inner;
        std::fill_n(positions, to_.size * inner, int64_t{-1});
        const int64_t first = outer * from_.size * inner;
        for (int64_t i = 0; i < from_.size; ++i) {
          for (int64_t k = 0; k < inner; ++k) {
            const int64_t at = first + i * inner + k;
            int64_t& position = positions[index[at] * inner + k];
            if (position < 0 || takes(at, first + position * inner + k)) position = i;
          }
        }
      }
    });
    return Status::Ok();
  }

 private:
  const std::string op_;
  const int index_;
  const DimView from_;
  const DimView to_;
};

class ScatterLast : public ScatterPositions {
 public:
  explicit ScatterLast(const KernelSpec& spec) : ScatterPositions(spec, 0) {}

  Status Run(const KernelArguments& arguments) override {
    return ScatterPositions::Run(arguments, [](int64_t, int64_t) { return true; });
  }
};

class ScatterArgmax : public ScatterPositions {
 public:
  explicit ScatterArgmax(const KernelSpec& spec)
      : ScatterPositions(spec, 1), dtype_(spec.call.inputs[0].dtype) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      const auto* const x = arguments.input<decltype(zero)>(0);
      return ScatterPositions::Run(arguments, [x](int64_t at, int64_t before) {
        return ComesBefore({ToF32(x[at]), at}, {ToF32(x[before]), before});
      });
    });
  }

 private:
  const DType dtype_;
};

}  // namespace

void RegisterScatterKernels(KernelRegistry& registry) {
  registry.Register("scatter_last", MakeKernel<ScatterLast>);
  registry.Register("scatter_argmax", MakeKernel<ScatterArgmax>);
}

}  // namespace zg
