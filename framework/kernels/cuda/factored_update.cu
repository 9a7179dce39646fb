#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/kernels/cuda/factored_steps.cuh"

namespace zg::cuda {
namespace {

constexpr int64_t kMaxBlocks = 1024;  // for each tensor

// The steps that the ops are made of. `gradient` and `control` are the indices of inputs.
class FactoredKernel : public Kernel {
 public:
  FactoredKernel(const KernelSpec& spec, int gradient, int control)
      : gradient_(gradient),
        has_control_(control < static_cast<int>(spec.call.inputs.size()) &&
                     IsFloat(spec.call.inputs[control].dtype)),
        control_(control),
        first_measure_(has_control_ ? control + 1 : control),
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
  bool is_measured() const { return num_inputs_ > first_measure_; }
  int64_t num_tensors() const { return static_cast<int64_t>(matrices_.tensors.size()); }
  int64_t num_sums() const { return matrices_.num_rows + matrices_.num_columns; }

  FactoredPart PartOf(const KernelArguments& arguments, int64_t row) const {
    return {rows_,
            row,
            matrices_.num_rows,
            matrices_.num_columns,
            is_measured() ? arguments.input<int64_t>(num_inputs_ - 1) : nullptr,
            arguments.device_step,
            has_control_ ? arguments.input<float>(control_) : nullptr,
            options_};
  }

  // Calls run(row) for every local row of the bucket.
  template <typename Run>
  Status ForRows(const Run& run) const {
    for (int64_t row = 0; row < rows_.rows; ++row) ZG_RETURN_IF_ERROR(run(row));
    return Status::Ok();
  }

  template <typename Run>
  Status ForLists(const Run& run) const {
    for (size_t first = 0; first < matrices_.tensors.size(); first += kMaxFactored) {
      FactoredList list = {};
      list.first = static_cast<int>(first);
      list.count =
          static_cast<int>(std::min(matrices_.tensors.size() - first, size_t{kMaxFactored}));
      std::copy_n(matrices_.tensors.begin() + static_cast<int64_t>(first), list.count,
                  list.tensors);
      for (FactoredTensor& tensor : list.tensors) {  // the states of an empty one stay unchanged
        if (tensor.size() == 0) tensor = {tensor.begin, 0, 0, 0, tensor.first_row, 0};
      }
      ZG_RETURN_IF_ERROR(run(list));
    }
    return Status::Ok();
  }

  // For the tensors of a list, the largest of which needs so many threads.
  template <typename Count>
  static LaunchShape BlocksFor(const FactoredList& list, const Count& threads_for) {
    int64_t threads = 1;
    for (int i = 0; i < list.count; ++i) {
      threads = std::max<int64_t>(threads, threads_for(list.tensors[i]));
    }
    const int64_t blocks = std::min(CeilDivide(threads, kThreads), kMaxBlocks);
    return {dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(list.count))};
  }

  static Status Clear(const KernelArguments& arguments, int64_t* words, int64_t count) {
    return CudaStatus(cudaMemsetAsync(words, 0, count * sizeof(int64_t),
                                      static_cast<cudaStream_t>(arguments.stream)),
                      "sums of a factored update could not be cleared");
  }

  // Exact square sums of each tensor at words + tensor * stride, which are zeros.
  template <typename Elements>
  Status AddTerms(const KernelArguments& arguments, const Elements& elements, int64_t stride,
                  int64_t* words) const {
    return ForRows([&](int64_t row) {
      return ForLists([&](const FactoredList& list) {
        const LaunchShape shape = BlocksFor(list, [&](const FactoredTensor& tensor) {
          return CeilDivide(std::min(tensor.part_size(), rows_.elements), kSquareSumTermElements);
        });
        return Launch(FactoredTermsKernel<Elements>, shape, arguments.stream, elements,
                      PartOf(arguments, row), list, stride, words);
      });
    });
  }

  Status TakeFactorSums(const KernelArguments& arguments, const int64_t* norms,
                        int64_t* sums) const {
    ZG_RETURN_IF_ERROR(Clear(arguments, sums, 2 * num_sums()));
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      using T = decltype(zero);
      // One tensor at a time, because each has its own width.
      for (int64_t t = 0; t < num_tensors(); ++t) {
        FactoredList list = {};
        list.first = static_cast<int>(t);
        list.count = 1;
        list.tensors[0] = matrices_.tensors[t];
        const FactoredTensor& tensor = list.tensors[0];
        int width = 1;
        while (width < kThreads && width < tensor.columns) width *= 2;
        const int64_t blocks = CeilDivide(tensor.columns, width) *
                               CeilDivide(tensor.num_rows(), kThreads / width * kFactoredRows);
        ZG_RETURN_IF_ERROR(ForRows([&](int64_t row) {
          return Launch(FactorSumsKernel<T>, {dim3(static_cast<unsigned>(blocks))},
                        arguments.stream, arguments.input<T>(gradient_), PartOf(arguments, row),
                        list, norms, width, sums);
        }));
      }
      return Status::Ok();
    });
  }

  Status SetFactors(const KernelArguments& arguments, const int64_t* norms, const int64_t* sums,
                    const FactorStates& states, float* ratios) const {
    return ForLists([&](const FactoredList& list) {
      const LaunchShape shape = BlocksFor(list, [](const FactoredTensor& tensor) {
        return tensor.num_rows() + tensor.num_columns();
      });
      ZG_RETURN_IF_ERROR(Launch(NextFactorsKernel, shape, arguments.stream, PartOf(arguments, 0),
                                list, norms, sums, states));
      const LaunchShape by_matrix =
          BlocksFor(list, [](const FactoredTensor& tensor) { return tensor.count * kThreads; });
      return Launch(FactorRatiosKernel, by_matrix, arguments.stream, PartOf(arguments, 0), list,
                    states.rows, ratios);
    });
  }

  // Calls use(directions): u of each element, from the new rows and columns.
  template <typename Use>
  Status WithDirections(const KernelArguments& arguments, const float* ratios, const float* columns,
                        const Use& use) const {
    const auto floor = static_cast<float>(options_.epsilon1 * options_.epsilon1);
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      using T = decltype(zero);
      return use(Directions<T>{arguments.input<T>(gradient_), ratios, columns, floor});
    });
  }

  Status TakeStepSums(const KernelArguments& arguments, const float* ratios, const float* columns,
                      int64_t* words) const {
    ZG_RETURN_IF_ERROR(Clear(arguments, words, num_tensors() * kExactSumWords));
    return WithDirections(arguments, ratios, columns, [&](const auto& directions) {
      return AddTerms(arguments, directions, kExactSumWords, words);
    });
  }

  const int gradient_;
  const bool has_control_;
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

  Status Run(const KernelArguments& arguments) override {
    return TakeFactorSums(arguments, arguments.input<int64_t>(first_measure_),
                          arguments.output<int64_t>(0));
  }
};

class FactoredStepSums : public FactoredKernel {
 public:
  explicit FactoredStepSums(const KernelSpec& spec) : FactoredKernel(spec, 0, 3) {}

  int64_t workspace_bytes() const override {
    return (num_sums() + matrices_.num_rows) * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    auto* const rows = static_cast<float*>(arguments.workspace);
    float* const columns = rows + matrices_.num_rows;
    float* const ratios = rows + num_sums();
    ZG_RETURN_IF_ERROR(SetFactors(
        arguments, arguments.input<int64_t>(first_measure_),
        arguments.input<int64_t>(first_measure_ + 1),
        {arguments.input<float>(1), arguments.input<float>(2), rows, columns, false}, ratios));
    return TakeStepSums(arguments, ratios, columns, arguments.output<int64_t>(0));
  }
};

class FactoredUpdate : public FactoredKernel {
 public:
  explicit FactoredUpdate(const KernelSpec& spec) : FactoredKernel(spec, 1, 4) {}

  // An op that computes its own sums keeps those that others are given: norms, sums and square sums
  // of steps.
  int64_t workspace_bytes() const override {
    return own_words() * static_cast<int64_t>(sizeof(int64_t)) +
           (matrices_.num_rows + num_tensors()) * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    auto* const words = static_cast<int64_t*>(arguments.workspace);
    int64_t* const own_sums = words + num_tensors() * kFactoredNormWords;
    int64_t* const own_step_sums = own_sums + 2 * num_sums();
    auto* const ratios = reinterpret_cast<float*>(words + own_words());
    float* const step_sizes = ratios + matrices_.num_rows;
    const auto measure = [&](int index, int64_t* own) -> const int64_t* {
      return is_measured() ? arguments.input<int64_t>(first_measure_ + index) : own;
    };
    const int64_t* const norms = measure(0, words);
    const int64_t* const sums = measure(1, own_sums);
    const int64_t* const step_sums = measure(2, own_step_sums);
    for (int i = 0; i < 3; ++i) ZG_RETURN_IF_ERROR(Copy(arguments, i));
    if (!is_measured()) {
      ZG_RETURN_IF_ERROR(TakeNorms(arguments, words));
      ZG_RETURN_IF_ERROR(TakeFactorSums(arguments, norms, own_sums));
    }
    float* const columns = arguments.output<float>(2);
    ZG_RETURN_IF_ERROR(SetFactors(arguments, norms, sums,
                                  {arguments.input<float>(2), arguments.input<float>(3),
                                   arguments.output<float>(1), columns, true},
                                  ratios));
    if (!is_measured()) {
      ZG_RETURN_IF_ERROR(TakeStepSums(arguments, ratios, columns, own_step_sums));
    }
    return WithDirections(arguments, ratios, columns, [&](const auto& directions) {
      return Apply(arguments, directions, norms, step_sums, step_sizes);
    });
  }

  std::string FaultText(const DeviceFault&) const override {
    return "an updated parameter is not finite";
  }

 private:
  int64_t own_words() const {
    return is_measured() ? 0
                         : num_tensors() * (kFactoredNormWords + kExactSumWords) + 2 * num_sums();
  }

  // Copies the old values if an output is not in their memory; the kernels change them there.
  static Status Copy(const KernelArguments& arguments, int64_t elements, int output) {
    const float* const from = arguments.input<float>(output == 0 ? 0 : output + 1);
    float* const to = arguments.output<float>(output);
    if (from == to) return Status::Ok();
    return CudaStatus(cudaMemcpyAsync(to, from, elements * sizeof(float), cudaMemcpyDeviceToDevice,
                                      static_cast<cudaStream_t>(arguments.stream)),
                      "the parameters of an update could not be copied");
  }
  Status Copy(const KernelArguments& arguments, int output) const {
    const int64_t sizes[] = {num_elements_, matrices_.num_rows, matrices_.num_columns};
    return Copy(arguments, sizes[output], output);
  }

  Status TakeNorms(const KernelArguments& arguments, int64_t* words) const {
    ZG_RETURN_IF_ERROR(Clear(arguments, words, num_tensors() * kFactoredNormWords));
    const PlainElements<float> of_p = {arguments.input<float>(0), false};
    ZG_RETURN_IF_ERROR(AddTerms(arguments, of_p, kFactoredNormWords, words));
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      const PlainElements<decltype(zero)> of_g = {arguments.input<decltype(zero)>(1), true};
      return AddTerms(arguments, of_g, kFactoredNormWords, words + kExactSumWords);
    });
  }

  template <typename T>
  Status Apply(const KernelArguments& arguments, const Directions<T>& directions,
               const int64_t* norms, const int64_t* step_sums, float* step_sizes) const {
    return ForLists([&](const FactoredList& list) {
      ZG_RETURN_IF_ERROR(Launch(FactoredStepSizesKernel, Threads(list.count), arguments.stream,
                                PartOf(arguments, 0), list, norms, step_sums, step_sizes));
      const LaunchShape shape = BlocksFor(list, [&](const FactoredTensor& tensor) {
        return std::min(tensor.part_size(), rows_.elements);
      });
      return ForRows([&](int64_t row) {
        return Launch(FactoredUpdateKernel<T>, shape, arguments.stream, directions,
                      PartOf(arguments, row), list, step_sizes, arguments.output<float>(0),
                      FaultSinkOf(arguments));
      });
    });
  }
};

}  // namespace

void RegisterFactoredUpdateKernels(KernelRegistry& registry) {
  registry.Register("factor_sums", MakeKernel<FactorSums>);
  registry.Register("factored_step_sums", MakeKernel<FactoredStepSums>);
  registry.Register("factored_update", MakeKernel<FactoredUpdate>);
}

}  // namespace zg::cuda
