#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/class_rows.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/softmax_rows.h"
#include "framework/kernels/parted_dim.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Elements summed in f32 before the sum goes on in f64.
constexpr int64_t kBlock = 4096;

float SquaredErrorBlock(const float* a, const float* b, int64_t count) {
  return Multiversion([=]() ZG_VERSION {
    return SumTerms(
        count, [=](const auto& load) __attribute__((always_inline)) {
          const Lanes difference = load(a, 0.0f) - load(b, 0.0f);
          return difference * difference;
        });
  });
}

void ScaledDifference(const float* a, const float* b, float scale, int64_t count, float* out) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) out[i] = (a[i] - b[i]) * scale;
  });
}

// Blocks of a prediction and a target in f32; those in 16 bits are widened in the workspace.
class PairReader {
 public:
  PairReader(DType prediction, DType target) : dtypes_{prediction, target} {}

  // Per thread.
  int64_t workspace_bytes() const {
    const bool any = dtypes_[0] != DType::kF32 || dtypes_[1] != DType::kF32;
    return any ? 2 * kBlock * static_cast<int64_t>(sizeof(float)) : 0;
  }
  const float* prediction(const void* data, int64_t begin, int64_t count, void* workspace) const {
    return Read(dtypes_[0], data, begin, count, static_cast<float*>(workspace));
  }
  const float* target(const void* data, int64_t begin, int64_t count, void* workspace) const {
    return Read(dtypes_[1], data, begin, count, static_cast<float*>(workspace) + kBlock);
  }

 private:
  static const float* Read(DType dtype, const void* data, int64_t begin, int64_t count,
                           float* block) {
    if (dtype == DType::kF32) return static_cast<const float*>(data) + begin;
    ConvertFloats(dtype, static_cast<const char*>(data) + begin * SizeOf(dtype), DType::kF32, block,
                  count);
    return block;
  }

  DType dtypes_[2];
};

// sum (prediction - target)^2 / divisor. The calling thread adds the sums of the blocks.
class MseLoss : public Kernel {
 public:
  int64_t workspace_bytes() const override {
    return WorkspaceBytes(num_sharing_, reader_.workspace_bytes()) +
           (num_sharing_ > 1 ? num_blocks() * static_cast<int64_t>(sizeof(float)) : 0);
  }

  explicit MseLoss(const KernelSpec& spec)
      : reader_(spec.call.inputs[0].dtype, spec.call.inputs[1].dtype),
        divisor_(spec.call.attributes.Float("divisor")),
        num_elements_(spec.call.inputs[0].shape.num_elements()),
        num_sharing_(NumSharing(spec.threads, num_elements_, kBlock, 1)) {}

  Status Run(const KernelArguments& arguments) override {
    double sum = 0.0;
    if (num_sharing_ == 1) {
      for (int64_t begin = 0; begin < num_elements_; begin += kBlock) {
        sum += OfBlock(arguments, begin, arguments.workspace);
      }
    } else {
      auto* const sums = static_cast<float*>(
          WorkspaceOf(num_sharing_, arguments.workspace, reader_.workspace_bytes()));
      ForEqualRanges(arguments.threads, num_sharing_, num_elements_, kBlock,
                     [&](int64_t begin, int64_t end, int thread) {
                       void* const blocks =
                           WorkspaceOf(thread, arguments.workspace, reader_.workspace_bytes());
                       for (; begin < end; begin += kBlock) {
                         sums[begin / kBlock] = OfBlock(arguments, begin, blocks);
                       }
                     });
      for (int64_t i = 0; i < num_blocks(); ++i) sum += sums[i];
    }
    arguments.output<float>(0)[0] = static_cast<float>(sum / divisor_);
    return Status::Ok();
  }

 private:
  int64_t num_blocks() const { return (num_elements_ + kBlock - 1) / kBlock; }

  float OfBlock(const KernelArguments& arguments, int64_t begin, void* workspace) const {
    const int64_t count = std::min(kBlock, num_elements_ - begin);
    const float* const prediction =
        reader_.prediction(arguments.inputs[0], begin, count, workspace);
    const float* const target = reader_.target(arguments.inputs[1], begin, count, workspace);
    return SquaredErrorBlock(prediction, target, count);
  }

  const PairReader reader_;
  const double divisor_;
  const int64_t num_elements_;
  const int num_sharing_;
};

// dprediction = (prediction - target) * 2 dloss / divisor.
class MseLossGrad : public Kernel {
 public:
  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, num_elements_, kBlock, 1),
                          reader_.workspace_bytes());
  }

  explicit MseLossGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        reader_(spec.call.inputs[1].dtype, spec.call.inputs[2].dtype),
        divisor_(spec.call.attributes.Float("divisor")),
        num_elements_(spec.outputs[0].shape.num_elements()),
        threads_(spec.threads) {}

  Status Run(const KernelArguments& arguments) override {
    const double dloss = arguments.input<float>(0)[0];
    const float scale = static_cast<float>(2.0 * dloss / divisor_);
    ForRanges(
        arguments.threads, num_elements_, kBlock, 1, [&](int64_t begin, int64_t end, int thread) {
          void* const blocks = WorkspaceOf(thread, arguments.workspace, reader_.workspace_bytes());
          for (; begin < end; begin += kBlock) RunBlock(arguments, scale, begin, blocks);
        });
    return Status::Ok();
  }

 private:
  void RunBlock(const KernelArguments& arguments, float scale, int64_t begin,
                void* workspace) const {
    const int64_t count = std::min(kBlock, num_elements_ - begin);
    const float* const prediction =
        reader_.prediction(arguments.inputs[1], begin, count, workspace);
    const float* const target = reader_.target(arguments.inputs[2], begin, count, workspace);
    if (dtype_ == DType::kF32) {
      ScaledDifference(prediction, target, scale, count, arguments.output<float>(0) + begin);
      return;
    }
    float* const block = static_cast<float*>(workspace);  // of the prediction
    ScaledDifference(prediction, target, scale, count, block);
    ConvertFloats(DType::kF32, block, dtype_, arguments.output<char>(0) + begin * SizeOf(dtype_),
                  count);
  }

  const DType dtype_;
  const PairReader reader_;
  const double divisor_;
  const int64_t num_elements_;
  const int threads_;
};

// The cost of the exponentials of a whole row.
int64_t RowCost(const MatrixShape& logits) { return 4 * logits.columns; }

Status CheckTargets(const char* op, const int64_t* targets, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    ZG_RETURN_IF_ERROR(CheckTarget(op, row, targets[row], columns));
  }
  return Status::Ok();
}

// The terms of LogSumExpRows, and in 16 bits also these rows in f32.
int64_t BytesOfRows(DType dtype, int64_t rows, int64_t columns) {
  const int64_t wide = dtype == DType::kF32 ? 0 : rows * columns;
  return (LogSumExpTerms(columns) + wide) * static_cast<int64_t>(sizeof(float));
}

// loss = sum over rows of (log_sum_exp - logits[target]) / divisor, added by the calling thread.
class SoftmaxCrossEntropy : public Kernel {
 public:
  explicit SoftmaxCrossEntropy(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        logits_(AsMatrix(spec.call.inputs[0].shape)),
        divisor_(spec.call.attributes.Float("divisor")),
        rows_at_once_(RowsAtOnce(logits_.columns)),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, logits_.rows, 1, RowCost(logits_)), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const targets = arguments.input<int64_t>(1);
    float* const log_sum_exp = arguments.output<float>(1);
    ZG_RETURN_IF_ERROR(
        CheckTargets("softmax_cross_entropy", targets, logits_.rows, logits_.columns));
    ForRanges(arguments.threads, logits_.rows, 1, RowCost(logits_),
              [&](int64_t begin, int64_t end, int thread) {
                auto* const terms =
                    static_cast<float*>(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
                for (int64_t row = begin; row < end; row += rows_at_once_) {
                  const int64_t rows = std::min(rows_at_once_, end - row);
                  const float* const logits =
                      RowsInF32(dtype_, arguments.inputs[0], row, rows, logits_.columns,
                                terms + LogSumExpTerms(logits_.columns));
                  LogSumExpRows(logits, rows, logits_.columns, terms, log_sum_exp + row);
                }
              });
    const double sum = WithFloatType(dtype_, [&](auto zero) {
      const auto* const logits = arguments.input<decltype(zero)>(0);
      double of_rows = 0.0;
      for (int64_t row = 0; row < logits_.rows; ++row) {
        const float of_target = ToF32(logits[row * logits_.columns + targets[row]]);
        of_rows += static_cast<double>(log_sum_exp[row]) - of_target;
      }
      return of_rows;
    });
    arguments.output<float>(0)[0] = static_cast<float>(sum / divisor_);
    return Status::Ok();
  }

 private:
  int64_t BytesOfThread() const { return BytesOfRows(dtype_, rows_at_once_, logits_.columns); }

  const DType dtype_;
  const MatrixShape logits_;
  const double divisor_;
  const int64_t rows_at_once_;
  const int threads_;
};

class SoftmaxCrossEntropyGrad : public Kernel {
 public:
  explicit SoftmaxCrossEntropyGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype),
        logits_(AsMatrix(spec.call.inputs[1].shape)),
        classes_(PartedDim::Of(spec.call, 4, logits_.columns)),
        divisor_(spec.call.attributes.Float("divisor")),
        rows_at_once_(RowsAtOnce(logits_.columns)),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return WorkspaceBytes(NumSharing(threads_, logits_.rows, 1, RowCost(logits_)), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    const PartedDim classes = classes_.At(arguments, 4);
    ZG_RETURN_IF_ERROR(CheckTargets("softmax_cross_entropy_grad", arguments.input<int64_t>(2),
                                    logits_.rows, classes.Total()));
    ForRanges(arguments.threads, logits_.rows, 1, RowCost(logits_),
              [&](int64_t begin, int64_t end, int thread) {
                RunRows(arguments, classes, begin, end,
                        WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
              });
    return Status::Ok();
  }

 private:
  // In 16 bits: rows_at_once_ in f32.
  int64_t BytesOfThread() const {
    return rows_at_once_ * logits_.columns * static_cast<int64_t>(sizeof(float));
  }

  void RunRows(const KernelArguments& arguments, const PartedDim& classes, int64_t begin,
               int64_t end, void* workspace) const {
    const float scale = static_cast<float>(arguments.input<float>(0)[0] / divisor_);
    const int64_t* const targets = arguments.input<int64_t>(2);
    const float* const log_sum_exp = arguments.input<float>(3);
    char* const dlogits = arguments.output<char>(0);
    const int64_t row_bytes = logits_.columns * SizeOf(dtype_);
    float* const wide = static_cast<float*>(workspace);
    int64_t own_targets[kMostRowsAtOnce];
    for (int64_t row = begin; row < end; row += rows_at_once_) {
      const int64_t rows = std::min(rows_at_once_, end - row);
      const float* const logits =
          RowsInF32(dtype_, arguments.inputs[1], row, rows, logits_.columns, wide);
      for (int64_t r = 0; r < rows; ++r) own_targets[r] = classes.Find(targets[row + r]);
      char* const out = dlogits + row * row_bytes;
      const bool is_f32 = dtype_ == DType::kF32;
      SoftmaxMinusOneHot(logits, rows, logits_.columns, log_sum_exp + row, own_targets, scale,
                         is_f32 ? reinterpret_cast<float*>(out) : wide);
      if (!is_f32) ConvertFloats(DType::kF32, wide, dtype_, out, rows * logits_.columns);
    }
  }

  const DType dtype_;
  const MatrixShape logits_;
  const PartedDim classes_;
  const double divisor_;
  const int64_t rows_at_once_;
  const int threads_;
};

// The loss and its gradient, with the bits of both above: each row is in the cache when its gradient is
// computed.
class SoftmaxCrossEntropyWithGrad : public Kernel {
 public:
  explicit SoftmaxCrossEntropyWithGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[1].dtype),
        logits_(AsMatrix(spec.outputs[1].shape)),
        divisor_(spec.call.attributes.Float("divisor")),
        rows_at_once_(RowsAtOnce(logits_.columns)),
        num_sharing_(NumSharing(spec.threads, logits_.rows, 1, Cost())) {}

  int64_t workspace_bytes() const override {
    return LossBytes() + WorkspaceBytes(num_sharing_, BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ZG_RETURN_IF_ERROR(CheckTargets("softmax_cross_entropy", arguments.input<int64_t>(2),
                                    logits_.rows, logits_.columns));
    auto* const losses = static_cast<double*>(arguments.workspace);
    void* const scratch = static_cast<char*>(arguments.workspace) + LossBytes();
    ForRanges(
        arguments.threads, logits_.rows, 1, Cost(), [&](int64_t begin, int64_t end, int thread) {
          auto* const terms = static_cast<float*>(WorkspaceOf(thread, scratch, BytesOfThread()));
          for (int64_t row = begin; row < end; row += rows_at_once_) {
            RunRows(arguments, row, std::min(rows_at_once_, end - row), terms, losses + row);
          }
        });
    double sum = 0.0;
    for (int64_t row = 0; row < logits_.rows; ++row) sum += losses[row];
    arguments.output<float>(0)[0] = static_cast<float>(sum / divisor_);
    return Status::Ok();
  }

 private:
  int64_t Cost() const { return 2 * RowCost(logits_); }
  // The rows' terms of the loss, for the sum in their order.
  int64_t LossBytes() const {
    return WholeLines(logits_.rows * static_cast<int64_t>(sizeof(double)));
  }
  int64_t BytesOfThread() const { return BytesOfRows(dtype_, rows_at_once_, logits_.columns); }

  // The rows' terms of the loss. Logits are read before their gradients, which may be in their place.
  void RunRows(const KernelArguments& arguments, int64_t first, int64_t rows, float* terms,
               double* losses) const {
    const int64_t columns = logits_.columns;
    float* const wide = terms + LogSumExpTerms(columns);
    const float* const logits = RowsInF32(dtype_, arguments.inputs[1], first, rows, columns, wide);
    const int64_t* const targets = arguments.input<int64_t>(2) + first;
    float log_sum_exp[kMostRowsAtOnce];
    LogSumExpRows(logits, rows, columns, terms, log_sum_exp);
    for (int64_t r = 0; r < rows; ++r) {
      losses[r] = static_cast<double>(log_sum_exp[r]) - logits[r * columns + targets[r]];
    }
    const float scale = static_cast<float>(arguments.input<float>(0)[0] / divisor_);
    char* const out = arguments.output<char>(1) + first * columns * SizeOf(dtype_);
    const bool is_f32 = dtype_ == DType::kF32;
    SoftmaxMinusOneHot(logits, rows, columns, log_sum_exp, targets, scale,
                       is_f32 ? reinterpret_cast<float*>(out) : wide);
    if (!is_f32) ConvertFloats(DType::kF32, wide, dtype_, out, rows * columns);
  }

  const DType dtype_;
  const MatrixShape logits_;
  const double divisor_;
  const int64_t rows_at_once_;
  const int num_sharing_;
};

}  // namespace

void RegisterLossesKernels(KernelRegistry& registry) {
  registry.Register("mse_loss", MakeKernel<MseLoss>);
  registry.Register("mse_loss_grad", MakeKernel<MseLossGrad>);
  registry.Register("softmax_cross_entropy", MakeKernel<SoftmaxCrossEntropy>);
  registry.Register("softmax_cross_entropy_grad", MakeKernel<SoftmaxCrossEntropyGrad>);
  registry.Register("softmax_cross_entropy_with_grad", MakeKernel<SoftmaxCrossEntropyWithGrad>);
}

}  // namespace zg
