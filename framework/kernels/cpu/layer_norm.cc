#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

// Running sums of a row: enough of them to hide the latency of an addition.
constexpr int kSums = 4;
constexpr int64_t kStep = kSums * kLanes;

ZG_INLINE float Fold(const Lanes (&sums)[kSums]) {
  return SumOfLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

struct Normalization {
  const float* gamma;
  const float* beta;
  float epsilon;
};

// One row; the variance is that of the differences from the mean (two passes, no cancellation).
ZG_MULTIVERSION void NormalizeRow(const float* x, int64_t columns, const Normalization& parameters,
                                  float* y, float* mean_out, float* rstd_out) {
  Lanes sums[kSums] = {};
  int64_t i = 0;
  for (; i + kStep <= columns; i += kStep) {
    for (int s = 0; s < kSums; ++s) sums[s] += LoadLanes(x + i + s * kLanes);
  }
  for (; i < columns; i += kLanes) {
    sums[0] += LoadLanes(x + i, std::min<int64_t>(columns - i, kLanes), 0.0f);
  }
  const float mean = Fold(sums) / static_cast<float>(columns);

  for (Lanes& sum : sums) sum = Lanes{};
  for (i = 0; i + kStep <= columns; i += kStep) {
    for (int s = 0; s < kSums; ++s) {
      const Lanes difference = LoadLanes(x + i + s * kLanes) - mean;
      sums[s] += difference * difference;
    }
  }
  for (; i < columns; i += kLanes) {
    const Lanes difference = LoadLanes(x + i, std::min<int64_t>(columns - i, kLanes), mean) - mean;
    sums[0] += difference * difference;
  }
  const float variance = Fold(sums) / static_cast<float>(columns);
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
      : x_(AsMatrix(spec.call.inputs[0].shape)),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
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
  Lanes sums[2][2] = {};
  int64_t i = 0;
  const auto add = [&](int s, Lanes dy, Lanes x, Lanes scale, Lanes gamma_sum, Lanes beta_sum)
      __attribute__((always_inline)) {
    const Lanes n = (x - r.mean) * r.rstd;
    const Lanes d = dy * scale;
    sums[0][s] += d;
    sums[1][s] += d * n;
    struct Sums {
      Lanes gamma, beta;
    };
    return Sums{gamma_sum + dy * n, beta_sum + dy};
  };
  for (; i + 2 * kLanes <= columns; i += 2 * kLanes) {
    for (int s = 0; s < 2; ++s) {
      const int64_t j = i + s * kLanes;
      const auto sum = add(s, LoadLanes(r.dy + j), LoadLanes(r.x + j), LoadLanes(gamma + j),
                           LoadLanes(dgamma + j), LoadLanes(dbeta + j));
      StoreLanes(sum.gamma, dgamma + j);
      StoreLanes(sum.beta, dbeta + j);
    }
  }
  for (; i < columns; i += kLanes) {
    const int64_t rest = std::min<int64_t>(columns - i, kLanes);
    const auto sum = add(0, LoadLanes(r.dy + i, rest, 0.0f), LoadLanes(r.x + i, rest, 0.0f),
                         LoadLanes(gamma + i, rest, 0.0f), LoadLanes(dgamma + i, rest, 0.0f),
                         LoadLanes(dbeta + i, rest, 0.0f));
    StoreLanes(sum.gamma, dgamma + i, rest);
    StoreLanes(sum.beta, dbeta + i, rest);
  }
  const float mean_d = SumOfLanes(sums[0][0] + sums[0][1]) / static_cast<float>(columns);
  const float mean_dn = SumOfLanes(sums[1][0] + sums[1][1]) / static_cast<float>(columns);
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
  explicit LayerNormGrad(const KernelSpec& spec) : x_(AsMatrix(spec.call.inputs[1].shape)) {}

  // The terms of a block of rows for dgamma and dbeta.
  int64_t workspace_bytes() const override { return 2 * x_.columns * sizeof(float); }

  Status Run(const KernelArguments& arguments) override {
    const float* const dy = arguments.input<float>(0);
    const float* const x = arguments.input<float>(1);
    const float* const gamma = arguments.input<float>(2);
    const float* const mean = arguments.input<float>(3);
    const float* const rstd = arguments.input<float>(4);
    float* const dx = arguments.output<float>(0);
    float* const dgamma = arguments.output<float>(1);
    float* const dbeta = arguments.output<float>(2);
    float* const block_dgamma = static_cast<float*>(arguments.workspace);
    float* const block_dbeta = block_dgamma + x_.columns;
    std::fill_n(dgamma, x_.columns, 0.0f);
    std::fill_n(dbeta, x_.columns, 0.0f);
    for (int64_t begin = 0; begin < x_.rows; begin += kBlockRows) {
      std::fill_n(block_dgamma, 2 * x_.columns, 0.0f);
      const int64_t end = std::min(begin + kBlockRows, x_.rows);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t offset = row * x_.columns;
        NormalizeGradRow({dy + offset, x + offset, mean[row], rstd[row], dx + offset}, gamma,
                         x_.columns, block_dgamma, block_dbeta);
      }
      AddInto(block_dgamma, x_.columns, dgamma);
      AddInto(block_dbeta, x_.columns, dbeta);
    }
    return Status::Ok();
  }

 private:
  static constexpr int64_t kBlockRows = 32;  // sums of sums: less rounding than one long sum
  const MatrixShape x_;
};

}  // namespace

void RegisterLayerNormKernels(KernelRegistry& registry) {
  registry.Register("layer_norm", MakeKernel<LayerNorm>);
  registry.Register("layer_norm_grad", MakeKernel<LayerNormGrad>);
}

}  // namespace zg
