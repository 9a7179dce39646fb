#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/square_terms.h"
#include "framework/kernels/cpu/update_blocks.h"
#include "framework/ops/bucket_parts.h"

namespace zg {
namespace {

constexpr int64_t kBlock = kUpdateBlock;
static_assert(kBlock % kSquareSumTermElements == 0, "a block cuts no term");

bool AllFinite(const float* data, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t num_others = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, data + i, sizeof(bits));
    num_others += (bits & kExponent) == kExponent;
  }
  return num_others == 0;
}

// The common part of both kernels: the tensors of the bucket, and its local rows. Threads share the
// elements of a tensor.
class NormedKernel : public Kernel {
 public:
  NormedKernel(const KernelSpec& spec, UpdateProgram program)
      : rows_(spec.call.attributes.Ints("tensors").empty() ? BucketRows::OfTensor(spec.call)
                                                           : BucketRows::Of(spec.call)),
        num_elements_(spec.call.inputs[0].shape.num_elements()),
        num_tensor_inputs_(program.num_tensors),
        has_control_(static_cast<int>(spec.call.inputs.size()) > program.num_tensors &&
                     spec.call.inputs[program.num_tensors].dtype != DType::kI64),
        num_norms_(program.norms.size()),
        lr_(spec.call.attributes.Float("lr")),
        weight_decay_(spec.call.attributes.Float("weight_decay")),
        after_updates_(static_cast<double>(spec.call.attributes.Int("after_updates"))),
        num_sharing_(NumSharing(spec.threads, num_elements_, kBlock, kCost)),
        blocks_(num_sharing_, UpdateBlocks(std::move(program), spec.call.inputs[1].dtype)),
        scalars_(this->program().num_scalar_inputs()) {
    const std::vector<int64_t>& tensors = spec.call.attributes.Ints("tensors");
    for (size_t i = 0; i + 1 < tensors.size(); i += 2) {
      tensors_.push_back({tensors[i], tensors[i + 1], 0});
    }
    if (tensors_.empty()) tensors_.push_back({0, num_elements_, 0});
    for (size_t i = 0; i + 1 < tensors_.size(); ++i) tensors_[i].end = tensors_[i + 1].begin;
    tensors_.back().end = std::numeric_limits<int64_t>::max();
  }

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(num_sharing_, BlockBytes()) + (num_sharing_ - 1) * WordsBytes();
  }

 protected:
  struct Tensor {
    int64_t begin = 0;  // in the whole bucket, or in each of its parts
    int64_t size = 0;   // in each of its parts
    int64_t end = 0;    // including the padding after it
  };

  const UpdateProgram& program() const { return blocks_[0].program(); }

  // Calls visit(tensor, begin, end) for the local elements [begin, end) of each tensor, in every
  // row. `begins`: the begins of rows, or null.
  template <typename Visit>
  void ForTensors(const int64_t* begins, bool with_padding, const Visit& visit) const {
    for (int64_t row = 0; row < rows_.rows; ++row) {
      const int64_t first = rows_.PlaceOf(begins, row).first;
      const int64_t base = row * rows_.elements;
      for (size_t t = 0; t < tensors_.size(); ++t) {
        const Tensor& tensor = tensors_[t];
        const int64_t tensor_end = with_padding ? tensor.end : tensor.begin + tensor.size;
        const int64_t begin = std::max(tensor.begin - first, int64_t{0});
        const int64_t end = std::min(tensor_end - first, rows_.elements);
        if (begin < end) visit(t, base + begin, base + end);
      }
    }
  }

  // Calls body(blocks, their workspace, begin, end, thread) for ranges of the elements [begin,
  // end), cut between blocks.
  template <typename Body>
  void ForBlocks(const KernelArguments& arguments, int64_t begin, int64_t end, const Body& body) {
    const int num_ranges =
        std::min(num_sharing_, NumSharing(num_sharing_, end - begin, kBlock, kCost));
    ForEqualRanges(arguments.threads, num_ranges, end - begin, kBlock,
                   [&](int64_t from, int64_t to, int thread) {
                     KernelArguments own = arguments;
                     own.workspace = WorkspaceOf(thread, arguments.workspace, BlockBytes());
                     blocks_[thread].SetScalars(scalars_, to - from, own.workspace);
                     body(blocks_[thread], own, begin + from, begin + to, thread);
                   });
  }

  void SetStep(const KernelArguments& arguments) {
    const float* const control =
        has_control_ ? arguments.input<float>(num_tensor_inputs_) : nullptr;
    factor_ = has_control_ ? control[0] : 1.0f;
    const double number = has_control_ ? control[1] : static_cast<double>(arguments.step->step);
    scalars_[kUpdateLr] = lr_ * arguments.step->lr_factor;
    scalars_[kUpdateWeightDecay] = weight_decay_;
    scalars_[kUpdateNumber] = number - after_updates_;
  }

  // words[tensor][norm] = the square sums of the local part of each tensor.
  void AddSquaresOfTensors(const KernelArguments& arguments, const int64_t* begins,
                           int64_t* words) {
    const size_t words_of_one = num_norms_ * kExactSumWords;
    std::fill_n(words, tensors_.size() * words_of_one, 0);
    ForTensors(begins, /*with_padding=*/false, [&](size_t t, int64_t begin, int64_t end) {
      AddSquares(arguments, begin, end, words + t * words_of_one);
    });
  }

  // Adds the square sums of elements [begin, end) of this part, which begin with a term. Threads
  // other than the first have words of their own: sums are exact, so the total is the same.
  void AddSquares(const KernelArguments& arguments, int64_t begin, int64_t end, int64_t* words) {
    const auto words_of = [&](int thread) {
      if (thread == 0) return words;
      void* const all = WorkspaceOf(num_sharing_, arguments.workspace, BlockBytes());
      return reinterpret_cast<int64_t*>(static_cast<char*>(all) + (thread - 1) * WordsBytes());
    };
    const size_t num_words = num_norms_ * kExactSumWords;
    for (int i = 1; i < num_sharing_; ++i) std::fill_n(words_of(i), num_words, 0);
    ForBlocks(arguments, begin, end,
              [&](const UpdateBlocks& blocks, const KernelArguments& own, int64_t from, int64_t to,
                  int thread) { AddSquaresOf(blocks, own, from, to, words_of(thread)); });
    for (int i = 1; i < num_sharing_; ++i) {
      const int64_t* const others = words_of(i);
      for (size_t word = 0; word < num_words; ++word) words[word] += others[word];
    }
  }

  const BucketRows rows_;
  const int64_t num_elements_;
  const int num_tensor_inputs_;
  const bool has_control_;
  const size_t num_norms_;
  const double lr_;
  const double weight_decay_;
  const double after_updates_;
  const int num_sharing_;
  std::vector<Tensor> tensors_;
  std::vector<UpdateBlocks> blocks_;  // one for each thread
  std::vector<double> scalars_;
  float factor_ = 1.0f;

 private:
  static constexpr int64_t kCost = 8;  // of the statements, per element

  int64_t BlockBytes() const { return blocks_[0].workspace_bytes(); }
  int64_t WordsBytes() const {
    return WholeLines(static_cast<int64_t>(num_norms_ * kExactSumWords * sizeof(int64_t)));
  }

  void AddSquaresOf(const UpdateBlocks& blocks, const KernelArguments& arguments, int64_t begin,
                    int64_t end, int64_t* words) const {
    for (; begin < end; begin += kBlock) {
      const int64_t count = std::min(kBlock, end - begin);
      blocks.Compute(arguments, factor_, begin, count, /*without_norms=*/true);
      for (size_t norm = 0; norm < num_norms_; ++norm) {
        const float* const x = blocks.ResultOf(program().norms[norm], arguments.workspace);
        AddSquareTerms(x, count, words + norm * kExactSumWords);
      }
    }
  }
};

class TensorSquareSums : public NormedKernel {
 public:
  TensorSquareSums(const KernelSpec& spec, UpdateProgram program)
      : NormedKernel(spec, std::move(program)),
        begins_(static_cast<int>(spec.call.inputs.size()) - 1) {}

  Status Run(const KernelArguments& arguments) override {
    SetStep(arguments);
    AddSquaresOfTensors(arguments, arguments.input<int64_t>(begins_), arguments.output<int64_t>(0));
    return Status::Ok();
  }

 private:
  const int begins_;
};

class NormedUpdate : public NormedKernel {
 public:
  NormedUpdate(const KernelSpec& spec, UpdateProgram program)
      : NormedKernel(spec, std::move(program)),
        sums_(static_cast<int>(spec.call.inputs.size()) - 2),
        is_measured_(spec.call.inputs.back().dtype == DType::kI64),
        own_words_(is_measured_ ? 0 : tensors_.size() * num_norms_ * kExactSumWords) {}

  Status Run(const KernelArguments& arguments) override {
    SetStep(arguments);
    if (factor_ == 0.0f) {
      KeepEverything(arguments);
      return Status::Ok();
    }
    const int64_t* const begins = is_measured_ ? arguments.input<int64_t>(sums_ + 1) : nullptr;
    const int64_t* const words = is_measured_ ? arguments.input<int64_t>(sums_) : own_words_.data();
    if (!is_measured_) AddSquaresOfTensors(arguments, begins, own_words_.data());
    bool is_finite = true;
    ForTensors(begins, /*with_padding=*/true, [&](size_t t, int64_t begin, int64_t end) {
      SetNorms(words + t * num_norms_ * kExactSumWords, tensors_[t].size * rows_.num_parts);
      is_finite = Apply(arguments, begin, end) && is_finite;
    });
    if (is_finite || !arguments.step->stop_on_non_finite) return Status::Ok();
    return FailedPrecondition("an updated parameter is not finite");
  }

 private:
  void SetNorms(const int64_t* words, int64_t size) {
    for (size_t norm = 0; norm < num_norms_; ++norm) {
      ExactSum sum;
      sum.AddWords(words + norm * kExactSumWords);
      scalars_[kNumUpdateScalars + norm] = std::sqrt(sum.Value());
    }
    scalars_[program().size_scalar()] = static_cast<double>(size);
  }

  // Returns whether all new parameters are finite. Outputs, which are also inputs, are written once
  // a whole block is computed.
  bool Apply(const KernelArguments& arguments, int64_t begin, int64_t end) {
    std::atomic<bool> is_finite{true};
    ForBlocks(arguments, begin, end,
              [&](const UpdateBlocks& blocks, const KernelArguments& own, int64_t from, int64_t to,
                  int /*thread*/) {
                if (!ApplyBlocks(blocks, own, from, to)) is_finite = false;
              });
    return is_finite;
  }

  bool ApplyBlocks(const UpdateBlocks& blocks, const KernelArguments& arguments, int64_t begin,
                   int64_t end) const {
    const std::vector<int>& results = program().results;
    bool is_finite = true;
    for (; begin < end; begin += kBlock) {
      const int64_t count = std::min(kBlock, end - begin);
      blocks.Compute(arguments, factor_, begin, count);
      for (size_t i = 0; i < results.size(); ++i) {
        const float* const result = blocks.ResultOf(results[i], arguments.workspace);
        if (i == 0) is_finite = AllFinite(result, count) && is_finite;
        std::memcpy(arguments.output<float>(static_cast<int>(i)) + begin, result,
                    count * sizeof(float));
      }
    }
    return is_finite;
  }

  void KeepEverything(const KernelArguments& arguments) const {
    for (int i = 0; i + 1 < num_tensor_inputs_; ++i) {
      const float* const old_values = arguments.input<float>(i == 0 ? 0 : i + 1);
      float* const out = arguments.output<float>(i);
      if (out != old_values) std::memcpy(out, old_values, num_elements_ * sizeof(float));
    }
  }

  const int sums_;
  const bool is_measured_;
  std::vector<int64_t> own_words_;
};

template <typename T>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  ZG_ASSIGN_OR_RETURN(UpdateProgram program, ParseUpdateProgram(spec.call));
  return std::unique_ptr<Kernel>(std::make_unique<T>(spec, std::move(program)));
}

}  // namespace

void RegisterNormedUpdateKernels(KernelRegistry& registry) {
  registry.Register("tensor_square_sums", Make<TensorSquareSums>);
  registry.Register("normed_update", Make<NormedUpdate>);
}

}  // namespace zg
