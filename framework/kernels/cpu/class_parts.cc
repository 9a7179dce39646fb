#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/kernels/cpu/class_rows.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/vector_math.h"
#include "framework/kernels/parted_dim.h"

namespace zg {
namespace {

constexpr int64_t kNumSums = 3;

// sums[0]: the largest x; sums[1]: the sum of e^(x - largest). A part with only -infinity has 0.
void MaximumAndSum(const float* x, int64_t columns, float* terms, float* sums) {
  Multiversion([=]() ZG_VERSION {
    const float maximum = MaximumOf(x, columns);
    const float shift = maximum == -INFINITY ? 0.0f : maximum;
    ZG_INDEPENDENT
    for (int64_t i = 0; i < columns; ++i) terms[i] = Exp(x[i] - shift);
    sums[0] = maximum;
    sums[1] = SumTerms(
        columns, [=](const auto& load)
                     __attribute__((always_inline)) { return load(terms, 0.0f); });
  });
}

class ClassPartSums : public Kernel {
 public:
  explicit ClassPartSums(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        logits_(AsMatrix(spec.call.inputs[0].shape)),
        classes_(PartedDim::Of(spec.call, 2, logits_.columns)),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, logits_.rows, 1, RowCost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const targets = arguments.input<int64_t>(1);
    const PartedDim classes = classes_.At(arguments, 2);
    for (int64_t row = 0; row < logits_.rows; ++row) {
      ZG_RETURN_IF_ERROR(CheckTarget("class_part_sums", row, targets[row], classes.Total()));
    }
    ForRanges(arguments.threads, logits_.rows, 1, RowCost(),
              [&](int64_t begin, int64_t end, int thread) {
                RunRows(arguments, classes, begin, end,
                        WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
              });
    return Status::Ok();
  }

 private:
  int64_t RowCost() const { return 4 * logits_.columns; }  // exponentials

  // The exponentials of one row, and in 16 bits also the row in f32.
  int64_t BytesOfThread() const {
    const int64_t num_rows = dtype_ == DType::kF32 ? 1 : 2;
    return num_rows * logits_.columns * static_cast<int64_t>(sizeof(float));
  }

  void RunRows(const KernelArguments& arguments, const PartedDim& classes, int64_t first,
               int64_t end, void* workspace) const {
    const int64_t* const targets = arguments.input<int64_t>(1);
    float* const terms = static_cast<float*>(workspace);
    const int64_t part_size = classes.PartSize();
    for (int64_t row = first; row < end; ++row) {
      const float* const logits =
          RowsInF32(dtype_, arguments.inputs[0], row, 1, logits_.columns, terms + logits_.columns);
      const int64_t target = classes.Find(targets[row]);
      for (int64_t part = 0; part < classes.own_parts; ++part) {
        float* const sums = arguments.output<float>(0) + (part * logits_.rows + row) * kNumSums;
        const int64_t begin = part * part_size;
        MaximumAndSum(logits + begin, part_size, terms, sums);
        const bool has_target = target >= begin && target < begin + part_size;
        sums[2] = has_target ? logits[target] : 0.0f;
      }
    }
  }

  const DType dtype_;
  const MatrixShape logits_;
  const PartedDim classes_;
  const int threads_;
};

class CrossEntropyOfParts : public Kernel {
 public:
  explicit CrossEntropyOfParts(const KernelSpec& spec)
      : parts_(spec.call.inputs[0].shape.dim(0)),
        rows_(spec.outputs[1].shape.num_elements()),
        divisor_(spec.call.attributes.Float("divisor")) {}

  Status Run(const KernelArguments& arguments) override {
    const float* const sums = arguments.input<float>(0);
    float* const log_sum_exp = arguments.output<float>(1);
    double loss = 0.0;
    for (int64_t row = 0; row < rows_; ++row) {
      const auto of_part = [&](int64_t part) { return sums + (part * rows_ + row) * kNumSums; };
      float maximum = -INFINITY;
      for (int64_t part = 0; part < parts_; ++part) {
        maximum = std::max(maximum, of_part(part)[0]);
      }
      float sum = 0.0f;
      float target = 0.0f;
      for (int64_t part = 0; part < parts_; ++part) {
        sum += of_part(part)[1] * Exp(of_part(part)[0] - maximum);
        target += of_part(part)[2];
      }
      log_sum_exp[row] = maximum + Log(sum);
      loss += static_cast<double>(log_sum_exp[row]) - target;
    }
    arguments.output<float>(0)[0] = static_cast<float>(loss / divisor_);
    return Status::Ok();
  }

 private:
  const int64_t parts_;
  const int64_t rows_;
  const double divisor_;
};

}  // namespace

void RegisterClassPartsKernels(KernelRegistry& registry) {
  registry.Register("class_part_sums", MakeKernel<ClassPartSums>);
  registry.Register("cross_entropy_of_parts", MakeKernel<CrossEntropyOfParts>);
}

}  // namespace zg
