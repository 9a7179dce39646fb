#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

struct Normalization {
  const float* gamma;
  const float* beta;
  float epsilon;
};

// One row; the variance is that of the differences from the mean (two passes, no cancellation).
ZG_MULTIVERSION void NormalizeRow(const float* x, int64_t columns, const Normalization& parameters,
                                  float* y, float* mean_out, float* rstd_out) {
  const float size = static_cast<float>(columns);
  const float mean =
      SumTerms(
          columns, [=](const auto& load) __attribute__((always_inline)) { return load(x, 0.0f); }) /
      size;
  const float variance = SumTerms(
                             columns,
                             [=](const auto& load) __attribute__((always_inline)) {
                               const Lanes difference = load(x, mean) - mean;
                               return difference * difference;
                             }) /
                         size;
  const float rstd = 1.0f / std::sqrt(variance + parameters.epsilon);

  const float* const gamma = parameters.gamma;
  const float* const beta = parameters.beta;
  ZG_INDEPENDENT
  for (int64_t j = 0; j < columns; ++j) y[j] = (x[j] - mean) * rstd * gamma[j] + beta[j];
  *mean_out = mean;
  *rstd_out = rstd;
}

class LayerNorm : public Kernel {
 public:
  explicit LayerNorm(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        x_(AsMatrix(spec.call.inputs[0].shape)),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  // In 16 bits gamma, beta and a row in f32.
  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return 3 * x_.columns * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    if (dtype_ != DType::kF32) return RunHalf(arguments);
    const float* const x = arguments.input<float>(0);
    const Normalization parameters = {arguments.input<float>(1), arguments.input<float>(2),
                                      epsilon_};
    float* const y = arguments.output<float>(0);
    float* const mean = arguments.output<float>(1);
    float* const rstd = arguments.output<float>(2);
    for (int64_t row = 0; row < x_.rows; ++row) {
      const int64_t offset = row * x_.columns;
      NormalizeRow(x + offset, x_.columns, parameters, y + offset, mean + row, rstd + row);
    }
    return Status::Ok();
  }

 private:
  Status RunHalf(const KernelArguments& arguments) {
    float* const gamma = static_cast<float*>(arguments.workspace);
    float* const beta = gamma + x_.columns;
    float* const values = beta + x_.columns;
    const int64_t row_bytes = x_.columns * SizeOf(dtype_);
    ConvertFloats(dtype_, arguments.inputs[1], DType::kF32, gamma, x_.columns);
    ConvertFloats(dtype_, arguments.inputs[2], DType::kF32, beta, x_.columns);
    for (int64_t row = 0; row < x_.rows; ++row) {
      ConvertFloats(dtype_, arguments.input<char>(0) + row * row_bytes, DType::kF32, values,
                    x_.columns);
      NormalizeRow(values, x_.columns, {gamma, beta, epsilon_}, values,
                   arguments.output<float>(1) + row, arguments.output<float>(2) + row);
      ConvertFloats(DType::kF32, values, dtype_, arguments.output<char>(0) + row * row_bytes,
                    x_.columns);
    }
    return Status::Ok();
  }

  const DType dtype_;
  const MatrixShape x_;
  const float epsilon_;
};

struct GradRow {
  const float* dy;
  const float* x;
  float mean;
  float rstd;
  float* dx;
};

// One row; adds its terms to dgamma and dbeta. With n = (x - mean) rstd and d = dy gamma:
// dx = (d - (sum d + n sum (d n)) / columns) rstd. `dx` may be `dy` or `x`.
ZG_MULTIVERSION void NormalizeGradRow(const GradRow& row, const float* gamma, int64_t columns,
                                      float* dgamma, float* dbeta) {
  const GradRow r = row;
  const float size = static_cast<float>(columns);
  const float mean_d =
      SumTerms(
          columns, [=](const auto& load) __attribute__((
                       always_inline)) { return load(r.dy, 0.0f) * load(gamma, 0.0f); }) /
      size;
  const float mean_dn = SumTerms(
                            columns,
                            [=](const auto& load) __attribute__((always_inline)) {
                              const Lanes n = (load(r.x, r.mean) - r.mean) * r.rstd;
                              return load(r.dy, 0.0f) * load(gamma, 0.0f) * n;
                            }) /
                        size;
  ZG_INDEPENDENT
  for (int64_t j = 0; j < columns; ++j) {
    const float n = (r.x[j] - r.mean) * r.rstd;
    dgamma[j] += r.dy[j] * n;
    dbeta[j] += r.dy[j];
  }
  ZG_INDEPENDENT
  for (int64_t j = 0; j < columns; ++j) {
    const float n = (r.x[j] - r.mean) * r.rstd;
    r.dx[j] = (r.dy[j] * gamma[j] - (mean_d + n * mean_dn)) * r.rstd;
  }
}

ZG_MULTIVERSION void AddInto(const float* x, int64_t count, float* sum) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

class LayerNormGrad : public Kernel {
 public:
  explicit LayerNormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype), x_(AsMatrix(spec.call.inputs[1].shape)) {}

  // The terms of a block of rows for dgamma and dbeta; in 16 bits also, in f32, gamma, dgamma,
  // dbeta, and a row of dy and x.
  int64_t workspace_bytes() const override {
    return (is_half() ? 7 : 2) * x_.columns * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    const float* const mean = arguments.input<float>(3);
    const float* const rstd = arguments.input<float>(4);
    float* const block_dgamma = static_cast<float*>(arguments.workspace);
    float* const block_dbeta = block_dgamma + x_.columns;
    float* const half_begin = block_dbeta + x_.columns;
    const float* gamma = arguments.input<float>(2);
    float* dgamma = arguments.output<float>(1);
    float* dbeta = arguments.output<float>(2);
    if (is_half()) {
      ConvertFloats(dtype_, arguments.inputs[2], DType::kF32, half_begin, x_.columns);
      gamma = half_begin;
      dgamma = half_begin + x_.columns;
      dbeta = half_begin + 2 * x_.columns;
    }
    std::fill_n(dgamma, x_.columns, 0.0f);
    std::fill_n(dbeta, x_.columns, 0.0f);
    for (int64_t begin = 0; begin < x_.rows; begin += kBlockRows) {
      std::fill_n(block_dgamma, 2 * x_.columns, 0.0f);
      const int64_t end = std::min(begin + kBlockRows, x_.rows);
      for (int64_t row = begin; row < end; ++row) {
        RunRow(arguments, row, {nullptr, nullptr, mean[row], rstd[row], nullptr}, gamma,
               half_begin + 3 * x_.columns);
      }
      AddInto(block_dgamma, x_.columns, dgamma);
      AddInto(block_dbeta, x_.columns, dbeta);
    }
    if (is_half()) {
      ConvertFloats(DType::kF32, dgamma, dtype_, arguments.outputs[1], x_.columns);
      ConvertFloats(DType::kF32, dbeta, dtype_, arguments.outputs[2], x_.columns);
    }
    return Status::Ok();
  }

 private:
  bool is_half() const { return dtype_ != DType::kF32; }

  // Completes `terms`. `wide`: memory for two rows in f32.
  void RunRow(const KernelArguments& arguments, int64_t row, GradRow terms, const float* gamma,
              float* wide) const {
    float* const block_dgamma = static_cast<float*>(arguments.workspace);
    const int64_t offset = row * x_.columns;
    if (!is_half()) {
      terms.dy = arguments.input<float>(0) + offset;
      terms.x = arguments.input<float>(1) + offset;
      terms.dx = arguments.output<float>(0) + offset;
    } else {
      const int64_t offset_bytes = offset * SizeOf(dtype_);
      float* const wide_x = wide + x_.columns;
      ConvertFloats(dtype_, arguments.input<char>(0) + offset_bytes, DType::kF32, wide, x_.columns);
      ConvertFloats(dtype_, arguments.input<char>(1) + offset_bytes, DType::kF32, wide_x,
                    x_.columns);
      terms.dy = wide;
      terms.x = wide_x;
      terms.dx = wide;
    }
    NormalizeGradRow(terms, gamma, x_.columns, block_dgamma, block_dgamma + x_.columns);
    if (is_half()) {
      ConvertFloats(DType::kF32, wide, dtype_, arguments.output<char>(0) + offset * SizeOf(dtype_),
                    x_.columns);
    }
  }

  const DType dtype_;
  static constexpr int64_t kBlockRows = 32;  // sums of sums: less rounding than one long sum
  const MatrixShape x_;
};

}  // namespace

void RegisterLayerNormKernels(KernelRegistry& registry) {
  registry.Register("layer_norm", MakeKernel<LayerNorm>);
  registry.Register("layer_norm_grad", MakeKernel<LayerNormGrad>);
}

}  // namespace zg
