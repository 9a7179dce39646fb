#include <cmath>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/row_sums.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/ops/addend.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

template <typename T>
struct ScaledRow {
  const T* x;
  const float* weight;
  float epsilon;
  T* y;
  float* rrms;
};

// `y` may be `x`.
template <typename T>
void NormalizeByRms(const ScaledRow<T>& row, int64_t columns) {
  Multiversion([=]() ZG_VERSION {
    const ScaledRow<T> r = row;
    const T* const x = r.x;
    const float squares = SumTerms(
        columns, [=](const auto& load) __attribute__((always_inline)) {
          const Lanes values = load(x, 0.0f);
          return values * values;
        });
    const float rrms = 1.0f / std::sqrt(squares / static_cast<float>(columns) + r.epsilon);
    *r.rrms = rrms;
    ZG_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j) r.y[j] = FromF32<T>(ToF32(x[j]) * rrms * r.weight[j]);
  });
}

class RmsNorm : public Kernel {
 public:
  explicit RmsNorm(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        x_(AsMatrix(spec.call.inputs[0].shape)),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  // In 16 bits: the weight in f32.
  int64_t workspace_bytes() const override {
    return dtype_ == DType::kF32 ? 0 : x_.columns * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    const float* weight = arguments.input<float>(1);
    if (dtype_ != DType::kF32) {
      float* const wide = static_cast<float*>(arguments.workspace);
      ConvertFloats(dtype_, arguments.inputs[1], DType::kF32, wide, x_.columns);
      weight = wide;
    }
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const auto run = [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t offset = row * x_.columns;
          NormalizeByRms<T>({arguments.input<T>(0) + offset, weight, epsilon_,
                             arguments.output<T>(0) + offset, arguments.output<float>(1) + row},
                            x_.columns);
        }
      };
      ForRanges(arguments.threads, x_.rows, 1, x_.columns, run);
    });
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const MatrixShape x_;
  const float epsilon_;
};

template <typename T>
struct ScaledGradRow {
  const T* dy;
  const T* x;
  const float* weight;
  float rrms;
  const T* addend;  // null: none
  T* dx;
  float* dweight;
};

// Adds the row's terms to dweight. With n = x rrms and e = dy weight: dx = (e - n average(e n))
// rrms + addend. `dx` may be `dy` or `x`.
template <typename T>
void NormalizeByRmsGrad(const ScaledGradRow<T>& row, int64_t columns) {
  Multiversion([=]() ZG_VERSION {
    const ScaledGradRow<T> r = row;
    const T* const dy = r.dy;
    const T* const x = r.x;
    const float* const weight = r.weight;
    const float rrms = r.rrms;
    const float sum = SumTerms(
        columns, [=](const auto& load) __attribute__((always_inline)) {
          return (load(dy, 0.0f) * load(weight, 0.0f)) * (load(x, 0.0f) * rrms);
        });
    const float average = sum / static_cast<float>(columns);
    ZG_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j) {
      const float n = ToF32(x[j]) * rrms;
      const float dy_j = ToF32(dy[j]);
      r.dweight[j] += dy_j * n;
      r.dx[j] = FromF32<T>((dy_j * weight[j] - n * average) * rrms);
    }
    if (r.addend == nullptr) return;
    ZG_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j) r.dx[j] = FromF32<T>(ToF32(r.dx[j]) + ToF32(r.addend[j]));
  });
}

class RmsNormGrad : public Kernel {
 public:
  explicit RmsNormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype),
        x_(AsMatrix(spec.call.inputs[1].shape)),
        addend_(AddendOf(spec.call)),
        sums_(RowParts::Of(spec.call), x_.columns, 1, spec.threads) {}

  // The terms of blocks of rows for dweight; in 16 bits also weight and dweight in f32.
  int64_t workspace_bytes() const override {
    return (sums_.workspace_floats() + (is_half() ? 2 * x_.columns : 0)) *
           static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    float* const blocks = static_cast<float*>(arguments.workspace);
    const float* weight = arguments.input<float>(2);
    float* dweight = arguments.output<float>(1);
    if (is_half()) {
      float* const wide = blocks + sums_.workspace_floats();
      ConvertFloats(dtype_, arguments.inputs[2], DType::kF32, wide, x_.columns);
      weight = wide;
      dweight = wide + x_.columns;
    }
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const addend = addend_ < 0 ? nullptr : arguments.input<T>(addend_);
      const auto add_rows = [&](int64_t begin, int64_t end, float* block) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t offset = row * x_.columns;
          NormalizeByRmsGrad<T>(
              {arguments.input<T>(0) + offset, arguments.input<T>(1) + offset, weight,
               arguments.input<float>(3)[row], addend == nullptr ? nullptr : addend + offset,
               arguments.output<T>(0) + offset, block},
              x_.columns);
        }
      };
      sums_.Run<1>({dweight}, blocks, arguments.threads, add_rows);
    });
    if (is_half()) {
      ConvertFloats(DType::kF32, dweight, dtype_, arguments.outputs[1], x_.columns);
    }
    return Status::Ok();
  }

 private:
  bool is_half() const { return dtype_ != DType::kF32; }

  const DType dtype_;
  const MatrixShape x_;
  const int addend_;  // index among the inputs; -1: none
  const RowSums sums_;
};

}  // namespace

void RegisterRmsNormKernels(KernelRegistry& registry) {
  registry.Register("rms_norm", MakeKernel<RmsNorm>);
  registry.Register("rms_norm_grad", MakeKernel<RmsNormGrad>);
}

}  // namespace zg
