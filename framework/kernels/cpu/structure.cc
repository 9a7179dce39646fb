#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

class Constant : public Kernel {
 public:
  explicit Constant(const KernelSpec& spec)
      : value_(static_cast<float>(spec.call.attributes.Float("value"))),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    std::fill_n(arguments.output<float>(0), num_elements_, value_);
    return Status::Ok();
  }

 private:
  const float value_;
  const int64_t num_elements_;
};

// Of any dtype: moves bytes. What the memory plan has put in place already is not touched.
class BucketPack : public Kernel {
 public:
  explicit BucketPack(const KernelSpec& spec) : bucket_bytes_(spec.outputs[0].bytes()) {
    const std::vector<int64_t>& offsets = spec.call.attributes.Ints("offsets");
    for (size_t i = 0; i < offsets.size(); ++i) {
      const TensorType& input = spec.call.inputs[i];
      parts_.push_back({offsets[i] * SizeOf(input.dtype), input.bytes()});
    }
  }

  Status Run(const KernelArguments& arguments) override {
    char* const bucket = arguments.output<char>(0);
    int64_t end = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      std::memset(bucket + end, 0, part.offset - end);
      const char* const input = arguments.input<char>(static_cast<int>(i));
      if (input != bucket + part.offset) std::memcpy(bucket + part.offset, input, part.bytes);
      end = part.offset + part.bytes;
    }
    std::memset(bucket + end, 0, bucket_bytes_ - end);
    return Status::Ok();
  }

 private:
  struct Part {
    int64_t offset;  // in bytes
    int64_t bytes;
  };
  const int64_t bucket_bytes_;
  std::vector<Part> parts_;  // in the order of their offsets, as the op's shape rule demands
};

// 16-bit terms are widened a block at a time.
class Accumulate : public Kernel {
 public:
  explicit Accumulate(const KernelSpec& spec)
      : term_dtype_(spec.call.inputs[1].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  int64_t workspace_bytes() const override {
    if (term_dtype_ == DType::kF32) return 0;
    return kElementwiseBlock * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    if (term_dtype_ != DType::kF32) return RunHalf(arguments);
    const float* const accumulator = arguments.input<float>(0);
    const float* const gradient = arguments.input<float>(1);
    float* const out = arguments.output<float>(0);
    if (!arguments.step->first_micro_step) {
      const float* const inputs[] = {accumulator, gradient};
      add_->run(inputs, 0.0f, num_elements_, out);
    } else if (gradient != out) {
      std::memcpy(out, gradient, num_elements_ * sizeof(float));
    }
    return Status::Ok();
  }

 private:
  Status RunHalf(const KernelArguments& arguments) {
    const char* const terms = arguments.input<char>(1);
    float* const out = arguments.output<float>(0);
    float* const block = static_cast<float*>(arguments.workspace);
    const bool is_first = arguments.step->first_micro_step;
    for (int64_t begin = 0; begin < num_elements_; begin += kElementwiseBlock) {
      const int64_t count = std::min(kElementwiseBlock, num_elements_ - begin);
      ConvertFloats(term_dtype_, terms + begin * SizeOf(term_dtype_), DType::kF32,
                    is_first ? out + begin : block, count);
      if (is_first) continue;
      const float* const inputs[] = {arguments.input<float>(0) + begin, block};
      add_->run(inputs, 0.0f, count, out + begin);
    }
    return Status::Ok();
  }

  const ElementwiseOp* const add_ = FindElementwiseOp("add");
  const DType term_dtype_;
  const int64_t num_elements_;
};

}  // namespace

void RegisterStructureKernels(KernelRegistry& registry) {
  registry.Register("constant", MakeKernel<Constant>);
  registry.Register("bucket_pack", [](const KernelSpec& spec) -> StatusOr<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(std::make_unique<BucketPack>(spec));
  });
  registry.Register("accumulate", MakeKernel<Accumulate>);
}

}  // namespace zg
