#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "framework/kernels/cuda/exact_blocks.cuh"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/update_program.cuh"
#include "framework/ops/bucket_parts.h"

namespace zg::cuda {
namespace {

constexpr int kTermElements = kSquareSumTermElements;
constexpr int kPack = 4;
constexpr int kMaxListed = 64;        // tensors in one launch
constexpr int64_t kMaxBlocks = 1024;  // per tensor

struct Tensor {
  int64_t begin;  // in the whole bucket, or in each of its parts
  int64_t size;   // in each of its parts
  int64_t end;    // including the padding after it
};

struct TensorList {
  int first;  // index of the first one in the bucket
  int count;
  Tensor tensors[kMaxListed];
};

// The node as kernels see it: a local row of a bucket, or one whole tensor.
struct Part {
  BucketRows rows;
  int64_t row;
  const int64_t* begins;  // of the rows; null: the bucket is not cut
  const StepContext* step;
  const float* control;  // null: no control
  UpdateHyperparameters hyperparameters;

  __device__ float Factor() const { return control == nullptr ? 1.0f : control[0]; }
  // Positions in the local part; empty if begin >= end.
  __device__ int64_t Begin(int64_t in_bucket) const {
    const int64_t begin = in_bucket - rows.PlaceOf(begins, row).first;
    return row * rows.elements + (begin > 0 ? begin : 0);
  }
  __device__ int64_t End(int64_t in_bucket) const {
    const int64_t end = in_bucket - rows.PlaceOf(begins, row).first;
    return row * rows.elements + (end < rows.elements ? end : rows.elements);
  }
};

// words[tensor][norm] of the whole bucket, which begin as zeros. blockIdx.y: the tensor in the list.
template <int kCount, typename T>
__global__ void TensorSquareSumsKernel(DeviceUpdateProgram program, UpdateTensors<T> tensors,
                                       Part part, TensorList list, int64_t* words) {
  const Tensor& tensor = list.tensors[blockIdx.y];
  const int64_t begin = part.Begin(tensor.begin);
  const int64_t end = part.End(tensor.begin + tensor.size);
  const int64_t first = begin + (static_cast<int64_t>(blockIdx.x) * kThreads) * kTermElements;
  if (first >= end) return;
  __shared__ float scalars[kMaxUpdateScalars];
  if (threadIdx.x == 0) {
    double exact[kMaxUpdateScalars] = {};
    part.hyperparameters.SetScalars(*part.step, part.control, exact);
    EvaluateUpdateScalars(program, exact);
    for (int s = 0; s < kMaxUpdateScalars; ++s) scalars[s] = static_cast<float>(exact[s]);
  }
  __syncthreads();
  const float factor = part.Factor();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * kTermElements;
  for (int norm = 0; norm < program.num_norms; ++norm) {
    ExactSum sum;
    for (int64_t term = first + threadIdx.x * kTermElements; term < end; term += stride) {
      Floats<kTermElements> x;
      for (int i = 0; i < kTermElements; i += kCount) {
        Floats<kCount> slots[kMaxUpdateSlots];
        if (term + i + kCount <= end) {
          tensors.Evaluate(program, term + i, factor, scalars, /*without_norms=*/true, slots);
#pragma unroll
          for (int j = 0; j < kCount; ++j) x[i + j] = slots[program.norms[norm]][j];
          continue;
        }
        for (int j = 0; j < kCount; ++j) {
          Floats<1> single[kMaxUpdateSlots];
          x[i + j] = 0.0f;
          if (term + i + j >= end) continue;
          tensors.Evaluate(program, term + i + j, factor, scalars, /*without_norms=*/true, single);
          x[i + j] = single[program.norms[norm]][0];
        }
      }
      sum.Add(SumOfSquares(x));
    }
    int64_t* const own =
        words + ((list.first + blockIdx.y) * program.num_norms + norm) * kExactSumWords;
    WriteBlockSum(sum, [&](int word, int64_t total) { AtomicAdd(own + word, total); });
  }
}

// scalars[tensor][kMaxUpdateScalars], with the norms. One thread for each tensor.
__global__ void NormScalarsKernel(DeviceUpdateProgram program, Part part, TensorList list,
                                  const int64_t* words, float* scalars) {
  const int listed = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (listed >= list.count) return;
  double exact[kMaxUpdateScalars] = {};
  part.hyperparameters.SetScalars(*part.step, part.control, exact);
  const int64_t tensor = list.first + listed;
  for (int norm = 0; norm < program.num_norms; ++norm) {
    ExactSum sum;
    sum.AddWords(words + (tensor * program.num_norms + norm) * kExactSumWords);
    exact[kNumUpdateScalars + norm] = std::sqrt(sum.Value());
  }
  exact[kNumUpdateScalars + program.num_norms] =
      static_cast<double>(list.tensors[listed].size * part.rows.num_parts);
  EvaluateUpdateScalars(program, exact);
  for (int s = 0; s < kMaxUpdateScalars; ++s) {
    scalars[tensor * kMaxUpdateScalars + s] = static_cast<float>(exact[s]);
  }
}

// blockIdx.y: the tensor in the list.
template <int kCount, typename T>
__global__ void NormedUpdateKernel(DeviceUpdateProgram program, UpdateTensors<T> tensors,
                                   UpdateOutputs outputs, Part part, TensorList list,
                                   const float* scalars_of_tensors, FaultSink faults) {
  const Tensor& tensor = list.tensors[blockIdx.y];
  const int64_t begin = part.Begin(tensor.begin);
  const int64_t end = part.End(tensor.end);
  if (begin + static_cast<int64_t>(blockIdx.x) * kThreads * kCount >= end) return;
  __shared__ float scalars[kMaxUpdateScalars];
  const float* const own = scalars_of_tensors + (list.first + blockIdx.y) * kMaxUpdateScalars;
  for (int s = static_cast<int>(threadIdx.x); s < kMaxUpdateScalars; s += kThreads) {
    scalars[s] = own[s];
  }
  __syncthreads();
  const float factor = part.Factor();
  bool is_finite = true;
  const auto update = [&](auto count, int64_t at) {
    constexpr int kElements = decltype(count)::value;
    if (factor == 0.0f) return outputs.Keep<kElements>(program, tensors, at);
    Floats<kElements> slots[kMaxUpdateSlots];
    tensors.Evaluate(program, at, factor, scalars, /*without_norms=*/false, slots);
    is_finite = outputs.Store(program, slots, at) && is_finite;
  };
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * kCount;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (int64_t at = begin + thread * kCount; at < end; at += stride) {
    if (at + kCount <= end) {
      update(std::integral_constant<int, kCount>(), at);
    } else {
      for (int64_t i = at; i < end; ++i) update(std::integral_constant<int, 1>(), i);
    }
  }
  if (!is_finite && factor != 0.0f && part.step->stop_on_non_finite) faults.Record(0, 0);
}

class NormedKernel : public Kernel {
 public:
  NormedKernel(const DeviceUpdateProgram& program, const KernelSpec& spec)
      : program_(program),
        hyperparameters_(spec.call.attributes),
        gradient_dtype_(spec.call.inputs[1].dtype),
        rows_(spec.call.attributes.Ints("tensors").empty() ? BucketRows::OfTensor(spec.call)
                                                           : BucketRows::Of(spec.call)),
        has_control_(static_cast<int>(spec.call.inputs.size()) > program.num_tensors &&
                     spec.call.inputs[program.num_tensors].dtype != DType::kI64) {
    const std::vector<int64_t>& tensors = spec.call.attributes.Ints("tensors");
    for (size_t i = 0; i + 1 < tensors.size(); i += 2) {
      tensors_.push_back({tensors[i], tensors[i + 1], 0});
    }
    if (tensors_.empty()) tensors_.push_back({0, rows_.elements, rows_.elements});
    for (size_t i = 0; i + 1 < tensors_.size(); ++i) tensors_[i].end = tensors_[i + 1].begin;
    tensors_.back().end = std::numeric_limits<int64_t>::max() / 2;  // of the part
  }

 protected:
  int64_t words_bytes() const {
    return static_cast<int64_t>(tensors_.size()) * program_.num_norms * kExactSumWords *
           static_cast<int64_t>(sizeof(int64_t));
  }

  // `begins`: index of the input with the begins of rows; -1: there is none.
  Part PartOf(const KernelArguments& arguments, int begins, int64_t row) const {
    return {rows_,
            row,
            begins < 0 ? nullptr : arguments.input<int64_t>(begins),
            arguments.device_step,
            has_control_ ? arguments.input<float>(program_.num_tensors) : nullptr,
            hyperparameters_};
  }

  // Calls run(list, row, the maximum number of elements of its largest tensor in the row).
  template <typename Run>
  Status ForRows(const Run& run) const {
    for (int64_t row = 0; row < rows_.rows; ++row) {
      ZG_RETURN_IF_ERROR(ForLists(
          [&](const TensorList& list, int64_t elements) { return run(list, row, elements); }));
    }
    return Status::Ok();
  }
  template <typename Run>
  Status ForLists(const Run& run) const {
    for (size_t first = 0; first < tensors_.size(); first += kMaxListed) {
      TensorList list = {};
      list.first = static_cast<int>(first);
      list.count = static_cast<int>(std::min<size_t>(kMaxListed, tensors_.size() - first));
      int64_t largest = 0;
      for (int i = 0; i < list.count; ++i) {
        list.tensors[i] = tensors_[first + i];
        largest = std::max(largest, list.tensors[i].end - list.tensors[i].begin);
      }
      ZG_RETURN_IF_ERROR(run(list, std::min(largest, rows_.elements)));
    }
    return Status::Ok();
  }

  LaunchShape BlocksFor(const TensorList& list, int64_t elements, int64_t by_a_thread) const {
    const int64_t blocks = CeilDivide(elements, by_a_thread * kThreads);
    return {dim3(static_cast<unsigned>(std::min(blocks, kMaxBlocks)),
                 static_cast<unsigned>(list.count))};
  }

  Status TakeSquareSums(const KernelArguments& arguments, int begins, int64_t* words) const {
    ZG_RETURN_IF_ERROR(CudaStatus(
        cudaMemsetAsync(words, 0, words_bytes(), static_cast<cudaStream_t>(arguments.stream)),
        "the square sums of tensors could not be cleared"));
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      using T = decltype(zero);
      const UpdateTensors<T> tensors(arguments, program_.num_tensors);
      const bool is_aligned = tensors.AreAllAligned(program_.num_tensors);
      return ForRows([&](const TensorList& list, int64_t row, int64_t elements) {
        return Launch(is_aligned ? TensorSquareSumsKernel<kPack, T> : TensorSquareSumsKernel<1, T>,
                      BlocksFor(list, elements, kTermElements), arguments.stream, program_, tensors,
                      PartOf(arguments, begins, row), list, words);
      });
    });
  }

  const DeviceUpdateProgram program_;
  const UpdateHyperparameters hyperparameters_;
  const DType gradient_dtype_;
  const BucketRows rows_;
  const bool has_control_;
  std::vector<Tensor> tensors_;
};

class TensorSquareSums : public NormedKernel {
 public:
  TensorSquareSums(const DeviceUpdateProgram& program, const KernelSpec& spec)
      : NormedKernel(program, spec), begins_(static_cast<int>(spec.call.inputs.size()) - 1) {}

  Status Run(const KernelArguments& arguments) override {
    return TakeSquareSums(arguments, begins_, arguments.output<int64_t>(0));
  }

 private:
  const int begins_;
};

class NormedUpdate : public NormedKernel {
 public:
  NormedUpdate(const DeviceUpdateProgram& program, const KernelSpec& spec)
      : NormedKernel(program, spec),
        sums_(static_cast<int>(spec.call.inputs.size()) - 2),
        is_measured_(spec.call.inputs.back().dtype == DType::kI64) {}

  // The words of an op that computes its own sums, and the scalars of tensors.
  int64_t workspace_bytes() const override {
    return words_bytes() + static_cast<int64_t>(tensors_.size()) * kMaxUpdateScalars *
                               static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    const int begins = is_measured_ ? sums_ + 1 : -1;
    auto* const own_words = static_cast<int64_t*>(arguments.workspace);
    auto* const scalars =
        reinterpret_cast<float*>(static_cast<char*>(arguments.workspace) + words_bytes());
    if (!is_measured_) ZG_RETURN_IF_ERROR(TakeSquareSums(arguments, begins, own_words));
    const int64_t* const words = is_measured_ ? arguments.input<int64_t>(sums_) : own_words;
    ZG_RETURN_IF_ERROR(ForLists([&](const TensorList& list, int64_t) {
      return Launch(NormScalarsKernel, Threads(list.count), arguments.stream, program_,
                    PartOf(arguments, begins, 0), list, words, scalars);
    }));
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      using T = decltype(zero);
      const int num_tensors = program_.num_tensors;
      const UpdateTensors<T> tensors(arguments, num_tensors);
      const UpdateOutputs outputs(arguments, num_tensors - 1);
      const bool is_aligned =
          tensors.AreAllAligned(num_tensors) && outputs.AreAllAligned(num_tensors - 1);
      return ForRows([&](const TensorList& list, int64_t row, int64_t elements) {
        return Launch(is_aligned ? NormedUpdateKernel<kPack, T> : NormedUpdateKernel<1, T>,
                      BlocksFor(list, elements, is_aligned ? kPack : 1), arguments.stream, program_,
                      tensors, outputs, PartOf(arguments, begins, row), list, scalars,
                      FaultSinkOf(arguments));
      });
    });
  }

  std::string FaultText(const DeviceFault&) const override {
    return "an updated parameter is not finite";
  }

 private:
  const int sums_;
  const bool is_measured_;
};

template <typename T>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  ZG_ASSIGN_OR_RETURN(const UpdateProgram source, ParseUpdateProgram(spec.call));
  ZG_ASSIGN_OR_RETURN(const DeviceUpdateProgram program, CompileUpdate(source, spec.call.op->name));
  return std::unique_ptr<Kernel>(std::make_unique<T>(program, spec));
}

}  // namespace

void RegisterNormedUpdateKernels(KernelRegistry& registry) {
  registry.Register("tensor_square_sums", Make<TensorSquareSums>);
  registry.Register("normed_update", Make<NormedUpdate>);
}

}  // namespace zg::cuda
