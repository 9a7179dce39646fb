#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/column_sum.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/cpu/row_sums.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/deviation_math.h"
#include "framework/ops/addend.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Rows whose sums are computed one after the other before their results, so that the latency of one
// row's sums is hidden behind the next row, and the rows are still in the first-level cache for the
// results. Rows are prefetched: those of the next group while results are stored, and those of the
// result while sums are computed.
constexpr int64_t kGroupRows = 4;

template <typename T>
struct NormalizeRows {
  const T* x;
  const float* gamma;
  const float* beta;
  float epsilon;
  T* y;
  float* mean;
  float* rstd;
};

// The variance is that of the differences from the mean (two passes, no cancellation). `y` may be
// `x`.
template <typename T>
void Normalize(const NormalizeRows<T>& block, int64_t rows, int64_t columns) {
  Multiversion([=]() ZG_VERSION {
    const NormalizeRows<T> b = block;
    const float size = static_cast<float>(columns);
    for (int64_t row = 0; row < rows; ++row) {
      const T* const x = b.x + row * columns;
      const float mean = SumTerms(
                             columns, [=
      ](const auto& load) __attribute__((always_inline)) { return load(x, 0.0f); }) /
                         size;
      const float variance = SumTerms(
                                 columns,
                                 [=](const auto& load) __attribute__((always_inline)) {
                                   const Lanes difference = load(x, mean) - mean;
                                   return difference * difference;
                                 }) /
                             size;
      b.mean[row] = mean;
      b.rstd[row] = InverseDeviation(variance, b.epsilon);
    }
    for (int64_t row = 0; row < rows; ++row) {
      const T* const x = b.x + row * columns;
      T* const y = b.y + row * columns;
      const float mean = b.mean[row];
      const float rstd = b.rstd[row];
      PrefetchRow<0>(x + kGroupRows * columns, columns);
      ZG_INDEPENDENT
      for (int64_t j = 0; j < columns; ++j) {
        y[j] = FromF32<T>((ToF32(x[j]) - mean) * rstd * b.gamma[j] + b.beta[j]);
      }
    }
  });
}

class LayerNorm : public Kernel {
 public:
  explicit LayerNorm(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        x_(AsMatrix(spec.call.inputs[0].shape)),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  // In 16 bits: gamma and beta in f32.
  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return 2 * x_.columns * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    const float* gamma = arguments.input<float>(1);
    const float* beta = arguments.input<float>(2);
    if (dtype_ != DType::kF32) {
      float* const wide = static_cast<float*>(arguments.workspace);
      ConvertFloats(dtype_, arguments.inputs[1], DType::kF32, wide, x_.columns);
      ConvertFloats(dtype_, arguments.inputs[2], DType::kF32, wide + x_.columns, x_.columns);
      gamma = wide;
      beta = wide + x_.columns;
    }
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const auto run = [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; row += kGroupRows) {
          const int64_t offset = row * x_.columns;
          Normalize<T>({arguments.input<T>(0) + offset, gamma, beta, epsilon_,
                        arguments.output<T>(0) + offset, arguments.output<float>(1) + row,
                        arguments.output<float>(2) + row},
                       std::min(kGroupRows, end - row), x_.columns);
        }
      };
      ForRanges(arguments.threads, x_.rows, kGroupRows, x_.columns, run);
    });
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const MatrixShape x_;
  const float epsilon_;
};

template <typename T>
struct NormalizeGradRows {
  const T* dy;
  const T* x;
  const float* gamma;
  const float* mean;
  const float* rstd;
  const T* addend;  // null: none
  T* dx;
  float* dgamma;
  float* dbeta;
};

// Processes at most kGroupRows rows; adds their terms to dgamma and dbeta. With n = (x - mean) rstd
// and d = dy gamma: dx = (d - (sum d + n sum (d n)) / columns) rstd + addend. `dx` may be `dy` or
// `x`.
template <typename T>
void NormalizeGrad(const NormalizeGradRows<T>& block, int64_t rows, int64_t columns) {
  Multiversion([=]() ZG_VERSION {
    const NormalizeGradRows<T> b = block;
    const float size = static_cast<float>(columns);
    float sums[kGroupRows][2];  // of d and d n
    for (int64_t row = 0; row < rows; ++row) {
      const T* const dy = b.dy + row * columns;
      const T* const x = b.x + row * columns;
      const float* const gamma = b.gamma;
      const float mean = b.mean[row];
      const float rstd = b.rstd[row];
      PrefetchRow<1>(b.dx + row * columns, columns);
      SumManyTerms<2>(
          columns,
          [=](const auto& load, Lanes* sum) __attribute__((always_inline)) {
            const Lanes n = (load(x, mean) - mean) * rstd;
            const Lanes d = load(dy, 0.0f) * load(gamma, 0.0f);
            sum[0] += d;
            sum[1] += d * n;
          },
          sums[row]);
    }
    for (int64_t row = 0; row < rows; ++row) {
      const T* const dy = b.dy + row * columns;
      const T* const x = b.x + row * columns;
      T* const dx = b.dx + row * columns;
      const float mean = b.mean[row];
      const float rstd = b.rstd[row];
      const float mean_d = sums[row][0] / size;
      const float mean_dn = sums[row][1] / size;
      PrefetchRow<0>(dy + kGroupRows * columns, columns);
      PrefetchRow<0>(x + kGroupRows * columns, columns);
      ZG_INDEPENDENT
      for (int64_t j = 0; j < columns; ++j) {
        const float n = (ToF32(x[j]) - mean) * rstd;
        const float dy_j = ToF32(dy[j]);
        b.dgamma[j] += dy_j * n;
        b.dbeta[j] += dy_j;
        dx[j] = FromF32<T>((dy_j * b.gamma[j] - (mean_d + n * mean_dn)) * rstd);
      }
      if (b.addend == nullptr) continue;
      const T* const addend = b.addend + row * columns;
      ZG_INDEPENDENT
      for (int64_t j = 0; j < columns; ++j) dx[j] = FromF32<T>(ToF32(dx[j]) + ToF32(addend[j]));
    }
  });
}

class LayerNormGrad : public Kernel {
 public:
  explicit LayerNormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype),
        x_(AsMatrix(spec.call.inputs[1].shape)),
        addend_(AddendOf(spec.call)),
        sums_dx_(spec.call.attributes.Bool("sums")),
        parts_(RowParts::Of(spec.call)),
        sums_(parts_, x_.columns, 2, spec.threads) {}

  // The terms of blocks of rows for dgamma and dbeta; in 16 bits also gamma, dgamma and dbeta in
  // f32.
  int64_t workspace_bytes() const override {
    return (sums_.workspace_floats() + (is_half() ? 3 * x_.columns : 0)) *
           static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    float* const blocks = static_cast<float*>(arguments.workspace);
    const float* gamma = arguments.input<float>(2);
    float* dgamma = arguments.output<float>(1);
    float* dbeta = arguments.output<float>(2);
    if (is_half()) {
      float* const wide = blocks + sums_.workspace_floats();
      ConvertFloats(dtype_, arguments.inputs[2], DType::kF32, wide, x_.columns);
      gamma = wide;
      dgamma = wide + x_.columns;
      dbeta = wide + 2 * x_.columns;
    }
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const addend = addend_ < 0 ? nullptr : arguments.input<T>(addend_);
      const auto add_rows = [&](int64_t begin, int64_t end, float* block) {
        for (int64_t row = begin; row < end; row += kGroupRows) {
          const int64_t offset = row * x_.columns;
          NormalizeGrad<T>({arguments.input<T>(0) + offset, arguments.input<T>(1) + offset, gamma,
                            arguments.input<float>(3) + row, arguments.input<float>(4) + row,
                            addend == nullptr ? nullptr : addend + offset,
                            arguments.output<T>(0) + offset, block, block + x_.columns},
                           std::min(kGroupRows, end - row), x_.columns);
        }
      };
      sums_.Run<2>({dgamma, dbeta}, blocks, arguments.threads, add_rows);
    });
    if (is_half()) {
      ConvertFloats(DType::kF32, dgamma, dtype_, arguments.outputs[1], x_.columns);
      ConvertFloats(DType::kF32, dbeta, dtype_, arguments.outputs[2], x_.columns);
    }
    if (sums_dx_) {
      ColumnSum(dtype_, arguments.outputs[0], parts_, x_.columns, arguments.outputs[3],
                arguments.threads);
    }
    return Status::Ok();
  }

 private:
  bool is_half() const { return dtype_ != DType::kF32; }

  const DType dtype_;
  const MatrixShape x_;
  const int addend_;  // index among the inputs; -1: none
  const bool sums_dx_;
  const RowParts parts_;
  const RowSums sums_;
};

}  // namespace

void RegisterLayerNormKernels(KernelRegistry& registry) {
  registry.Register("layer_norm", MakeKernel<LayerNorm>);
  registry.Register("layer_norm_grad", MakeKernel<LayerNormGrad>);
}

}  // namespace zg
