#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cpu/factored_segments.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/square_terms.h"
#include "framework/kernels/math/factored_math.h"
#include "framework/ops/bucket_parts.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int64_t kBlock = 1024;  // elements at a time
static_assert(kBlock % kSquareSumTermElements == 0, "a block cuts no term");

constexpr int64_t kNormWords = 2 * kExactSumWords;  // per tensor: those of p, and of g

void AddDigits(const float* x, int64_t count, const SquareUnit& unit, int64_t* column_high,
               int64_t* column_low, int64_t* row_high, int64_t* row_low) {
  if (unit.per_square == 0.0) return;  // all are 0, or some are not finite
  const double per_square = unit.per_square, per_rest = unit.per_rest;
  const SquareDigits sums = Multiversion([=]() ZG_VERSION {
    SquareDigits row = {0, 0};
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
      const SquareDigits digits = DigitsOfSquare(x[i], per_square, per_rest);
      column_high[i] += digits.high;
      column_low[i] += digits.low;
      row.high += digits.high;
      row.low += digits.low;
    }
    return row;
  });
  *row_high += sums.high;
  *row_low += sums.low;
}

void SetDirections(const float* g, int64_t count, float ratio, const float* columns, float floor,
                   float* u) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
      u[i] = FactoredDirection(g[i], ratio, columns[i], floor);
    }
  });
}

// Returns the number of elements that are not finite.
int64_t SetNext(const float* p, const float* u, int64_t count, float decay, float step_size,
                float* out) {
  return Multiversion([=]() ZG_VERSION {
    int64_t others = 0;
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
      const float next = FactoredNext(p[i], u[i], decay, step_size);
      others += !(next - next == 0.0f);
      out[i] = next;
    }
    return others;
  });
}

double NormOf(const int64_t* words) {
  ExactSum sum;
  sum.AddWords(words);
  return std::sqrt(sum.Value());
}

// The steps that the ops are made of. `gradient`, `control` and `begins` are the indices of inputs,
// or -1 if there is none.
class FactoredKernel : public Kernel {
 public:
  FactoredKernel(const KernelSpec& spec, int gradient, int control)
      : gradient_(gradient),
        control_(IsFloatInput(spec, control) ? control : -1),
        first_measure_(control_ < 0 ? control : control + 1),
        num_inputs_(static_cast<int>(spec.call.inputs.size())),
        gradient_dtype_(spec.call.inputs[gradient].dtype),
        num_elements_(spec.call.inputs[gradient].shape.num_elements()),
        rows_(spec.call.attributes.Ints("matrices").empty() ? BucketRows::OfTensor(spec.call)
                                                            : BucketRows::Of(spec.call)),
        matrices_(FactoredTensorsOf(spec.call)),
        options_{spec.call.attributes.Float("lr"),
                 spec.call.attributes.Float("weight_decay"),
                 spec.call.attributes.Float("beta2_decay"),
                 spec.call.attributes.Float("epsilon1"),
                 spec.call.attributes.Float("epsilon2"),
                 spec.call.attributes.Float("clip_threshold"),
                 static_cast<double>(spec.call.attributes.Int("after_updates"))} {}

 protected:
  // The arrays of one run.
  struct Work {
    const KernelArguments& arguments;
    const int64_t* begins = nullptr;  // of the local rows
    float factor = 1.0f;
    FactoredStep step = {};
    const int64_t* norms = nullptr;  // (tensors, 2, kExactSumWords): of p, of g
    const int64_t* sums = nullptr;   // (2, rows + columns)
    float* block = nullptr;          // kBlock elements of the gradient; likewise u
    float* u = nullptr;
    float* ratios = nullptr;  // of rows to their matrix's divisor
  };

  static bool IsFloatInput(const KernelSpec& spec, int index) {
    return index < static_cast<int>(spec.call.inputs.size()) &&
           IsFloat(spec.call.inputs[index].dtype);
  }

  bool is_measured() const { return num_inputs_ > first_measure_; }
  int64_t num_tensors() const { return static_cast<int64_t>(matrices_.tensors.size()); }
  int64_t num_sums() const { return matrices_.num_rows + matrices_.num_columns; }

  // The floats that Start takes from the workspace.
  int64_t num_scratch_floats() const { return 2 * kBlock + matrices_.num_rows; }

  Work Start(const KernelArguments& arguments, float* scratch) const {
    Work work = {arguments};
    const float* const control = control_ < 0 ? nullptr : arguments.input<float>(control_);
    work.factor = control == nullptr ? 1.0f : control[0];
    const double number =
        control == nullptr ? static_cast<double>(arguments.step->step) : control[1];
    work.step = FactoredStepOf(options_, arguments.step->lr_factor, number);
    if (is_measured()) {
      work.begins = arguments.input<int64_t>(num_inputs_ - 1);
      work.norms = arguments.input<int64_t>(first_measure_);
      if (first_measure_ + 2 < num_inputs_) {
        work.sums = arguments.input<int64_t>(first_measure_ + 1);
      }
    }
    work.block = scratch;
    work.u = scratch + kBlock;
    work.ratios = scratch + 2 * kBlock;
    return work;
  }

  SquareUnit UnitOf(const Work& work, int64_t tensor) const {
    const FactoredTensor& matrices = matrices_.tensors[tensor];
    ExactSum of_gradient;
    of_gradient.AddWords(work.norms + tensor * kNormWords + kExactSumWords);
    return SquareUnitOf(of_gradient.Value(), std::max(matrices.rows, matrices.columns));
  }

  // Calls visit(FactoredBlock) for the local part of each tensor; work.block has the gradient.
  template <typename Visit>
  void ForBlocks(const Work& work, const Visit& visit) const {
    for (int64_t row = 0; row < rows_.rows; ++row) {
      const auto [part, first] = rows_.PlaceOf(work.begins, row);
      for (int64_t t = 0; t < num_tensors(); ++t) {
        const FactoredTensor& tensor = matrices_.tensors[t];
        int64_t begin = std::max(tensor.begin - first, int64_t{0});
        const int64_t end = std::min(tensor.begin + tensor.part_size() - first, rows_.elements);
        for (; begin < end; begin += kBlock) {
          const FactoredBlock block = {t, part, begin + first - tensor.begin,
                                       row * rows_.elements + begin, std::min(kBlock, end - begin)};
          WithFloatType(gradient_dtype_, [&](auto zero) {
            const auto* const g = work.arguments.input<decltype(zero)>(gradient_) + block.begin;
            for (int64_t i = 0; i < block.count; ++i) work.block[i] = work.factor * ToF32(g[i]);
          });
          visit(block);
        }
      }
    }
  }

  void TakeFactorSums(const Work& work, int64_t* sums) const {
    std::fill_n(sums, 2 * num_sums(), 0);
    int64_t* const high = sums;
    int64_t* const low = sums + num_sums();
    int64_t tensor_of_unit = -1;
    SquareUnit unit;
    ForBlocks(work, [&](const FactoredBlock& block) {
      if (block.tensor != tensor_of_unit) unit = UnitOf(work, block.tensor);
      tensor_of_unit = block.tensor;
      ForSegments(matrices_.tensors[block.tensor], block, [&](const FactoredSegment& segment) {
        const int64_t column = matrices_.num_rows + segment.column;
        AddDigits(work.block + segment.begin, segment.count, unit, high + column, low + column,
                  high + segment.row, low + segment.row);
      });
    });
  }

  // For the whole bucket; the new states may overwrite the old ones. Sets work.ratios.
  void SetFactors(const Work& work, const float* old_rows, const float* old_columns, float* rows,
                  float* columns) const {
    const int64_t* const high = work.sums;
    const int64_t* const low = work.sums + num_sums();
    const double share = work.step.share;
    for (int64_t t = 0; t < num_tensors(); ++t) {
      const FactoredTensor& tensor = matrices_.tensors[t];
      if (tensor.size() == 0) {  // its rows have no means
        std::copy_n(old_rows + tensor.first_row, tensor.num_rows(), rows + tensor.first_row);
        std::copy_n(old_columns + tensor.first_column, tensor.num_columns(),
                    columns + tensor.first_column);
        continue;
      }
      const SquareUnit unit = UnitOf(work, t);
      for (int64_t i = 0; i < tensor.num_columns(); ++i) {
        const int64_t at = tensor.first_column + i;
        const int64_t sum = matrices_.num_rows + at;
        columns[at] = NextFactor(old_columns[at], unit, high[sum], low[sum], tensor.rows, share);
      }
      for (int64_t matrix = 0; matrix < tensor.count; ++matrix) {
        const int64_t first = tensor.first_row + matrix * tensor.rows;
        double total = 0;
        for (int64_t row = first; row < first + tensor.rows; ++row) {
          rows[row] = NextFactor(old_rows[row], unit, high[row], low[row], tensor.columns, share);
          total += rows[row];
        }
        const double mean = total / static_cast<double>(tensor.rows);
        const double divisor = FactorDivisor(mean, options_.epsilon1);
        for (int64_t row = first; row < first + tensor.rows; ++row) {
          work.ratios[row] = static_cast<float>(rows[row] / divisor);
        }
      }
    }
  }

  // Computes work.u of the block.
  void Directions(const Work& work, const FactoredBlock& block, const float* columns) const {
    const auto floor = static_cast<float>(options_.epsilon1 * options_.epsilon1);
    ForSegments(matrices_.tensors[block.tensor], block, [&](const FactoredSegment& segment) {
      SetDirections(work.block + segment.begin, segment.count, work.ratios[segment.row],
                    columns + segment.column, floor, work.u + segment.begin);
    });
  }

  void TakeStepSums(const Work& work, const float* columns, int64_t* words) const {
    std::fill_n(words, num_tensors() * kExactSumWords, 0);
    ForBlocks(work, [&](const FactoredBlock& block) {
      Directions(work, block, columns);
      AddSquareTerms(work.u, block.count, words + block.tensor * kExactSumWords);
    });
  }

  const int gradient_;
  const int control_;
  const int first_measure_;
  const int num_inputs_;
  const DType gradient_dtype_;
  const int64_t num_elements_;
  const BucketRows rows_;
  const FactoredTensors matrices_;
  const FactoredOptions options_;
};

class FactorSums : public FactoredKernel {
 public:
  explicit FactorSums(const KernelSpec& spec) : FactoredKernel(spec, 0, 1) {}

  int64_t workspace_bytes() const override { return num_scratch_floats() * sizeof(float); }

  Status Run(const KernelArguments& arguments) override {
    const Work work = Start(arguments, static_cast<float*>(arguments.workspace));
    TakeFactorSums(work, arguments.output<int64_t>(0));
    return Status::Ok();
  }
};

class FactoredStepSums : public FactoredKernel {
 public:
  explicit FactoredStepSums(const KernelSpec& spec) : FactoredKernel(spec, 0, 3) {}

  int64_t workspace_bytes() const override {
    return (num_scratch_floats() + num_sums()) * sizeof(float);
  }

  Status Run(const KernelArguments& arguments) override {
    auto* const rows = static_cast<float*>(arguments.workspace);
    float* const columns = rows + matrices_.num_rows;
    const Work work = Start(arguments, rows + num_sums());
    SetFactors(work, arguments.input<float>(1), arguments.input<float>(2), rows, columns);
    TakeStepSums(work, columns, arguments.output<int64_t>(0));
    return Status::Ok();
  }
};

class FactoredUpdate : public FactoredKernel {
 public:
  explicit FactoredUpdate(const KernelSpec& spec) : FactoredKernel(spec, 1, 4) {}

  // An op that computes its own sums keeps those that others are given: norms, sums and square sums
  // of steps.
  int64_t workspace_bytes() const override {
    const int64_t words =
        is_measured() ? 0 : num_tensors() * (kNormWords + kExactSumWords) + 2 * num_sums();
    return words * sizeof(int64_t) + num_scratch_floats() * sizeof(float);
  }

  Status Run(const KernelArguments& arguments) override {
    float* const rows = arguments.output<float>(1);
    float* const columns = arguments.output<float>(2);
    auto* const words = static_cast<int64_t*>(arguments.workspace);
    int64_t* const own_sums = words + num_tensors() * kNormWords;
    int64_t* const own_step_sums = own_sums + 2 * num_sums();
    void* const scratch =
        is_measured() ? arguments.workspace : own_step_sums + num_tensors() * kExactSumWords;
    Work work = Start(arguments, static_cast<float*>(scratch));
    if (work.factor == 0.0f) {
      KeepEverything(arguments);
      return Status::Ok();
    }
    if (!is_measured()) {
      TakeNorms(work, words);
      work.norms = words;
      TakeFactorSums(work, own_sums);
      work.sums = own_sums;
    }
    SetFactors(work, arguments.input<float>(2), arguments.input<float>(3), rows, columns);
    if (!is_measured()) TakeStepSums(work, columns, own_step_sums);
    const int64_t* const step_sums =
        is_measured() ? arguments.input<int64_t>(first_measure_ + 2) : own_step_sums;
    const bool is_finite = Apply(work, columns, step_sums);
    if (is_finite || !arguments.step->stop_on_non_finite) return Status::Ok();
    return FailedPrecondition("an updated parameter is not finite");
  }

 private:
  void TakeNorms(const Work& work, int64_t* words) const {
    std::fill_n(words, num_tensors() * kNormWords, 0);
    const float* const p = work.arguments.input<float>(0);
    ForBlocks(work, [&](const FactoredBlock& block) {
      int64_t* const own = words + block.tensor * kNormWords;
      AddSquareTerms(p + block.begin, block.count, own);
      AddSquareTerms(work.block, block.count, own + kExactSumWords);
    });
  }

  // Padding between tensors stays unchanged. Returns whether all new parameters are finite.
  bool Apply(const Work& work, const float* columns, const int64_t* step_sums) const {
    const float* const p = work.arguments.input<float>(0);
    float* const out = work.arguments.output<float>(0);
    if (out != p) std::memcpy(out, p, num_elements_ * sizeof(float));
    const auto decay = static_cast<float>(work.step.lr * options_.weight_decay);
    int64_t num_others = 0;
    int64_t tensor_of_size = -1;
    float step_size = 0.0f;
    ForBlocks(work, [&](const FactoredBlock& block) {
      const int64_t t = block.tensor;
      if (t != tensor_of_size) {
        step_size =
            FactoredStepSize(options_, work.step, NormOf(work.norms + t * kNormWords),
                             NormOf(step_sums + t * kExactSumWords), matrices_.tensors[t].size());
      }
      tensor_of_size = t;
      Directions(work, block, columns);
      float* const own = out + block.begin;
      num_others += SetNext(own, work.u, block.count, decay, step_size, own);
    });
    return num_others == 0;
  }

  void KeepEverything(const KernelArguments& arguments) const {
    const int64_t sizes[] = {num_elements_, matrices_.num_rows, matrices_.num_columns};
    for (int i = 0; i < 3; ++i) {
      const float* const old_values = arguments.input<float>(i == 0 ? 0 : i + 1);
      float* const out = arguments.output<float>(i);
      if (out != old_values) std::memcpy(out, old_values, sizes[i] * sizeof(float));
    }
  }
};

}  // namespace

void RegisterFactoredUpdateKernels(KernelRegistry& registry) {
  registry.Register("factor_sums", MakeKernel<FactorSums>);
  registry.Register("factored_step_sums", MakeKernel<FactoredStepSums>);
  registry.Register("factored_update", MakeKernel<FactoredUpdate>);
}

}  // namespace zg
