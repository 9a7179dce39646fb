#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"

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

// For any dtype: moves bytes. Inputs that the memory plan has put in place are not touched.
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

// The accumulator is in f32; a 16-bit gradient is widened, a block at a time.
class Accumulate : public Kernel {
 public:
  explicit Accumulate(const KernelSpec& spec)
      : gradient_dtype_(spec.call.inputs[1].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    if (arguments.step->first_micro_step && arguments.inputs[1] == arguments.outputs[0]) {
      return Status::Ok();
    }
    ForRanges(arguments.threads, num_elements_, kElementUnit, 1,
              [&](int64_t begin, int64_t end, int) { RunRange(arguments, begin, end); });
    return Status::Ok();
  }

 private:
  void RunRange(const KernelArguments& arguments, int64_t begin, int64_t end) const {
    const float* const accumulator = arguments.input<float>(0);
    const char* const gradient = arguments.input<char>(1);
    float* const out = arguments.output<float>(0);
    if (arguments.step->first_micro_step) {
      ConvertFloats(gradient_dtype_, gradient + begin * SizeOf(gradient_dtype_), DType::kF32,
                    out + begin, end - begin);
    } else if (gradient_dtype_ == DType::kF32) {
      Add(accumulator + begin, arguments.input<float>(1) + begin, end - begin, out + begin);
    } else {
      constexpr int64_t kBlock = 2048;
      float widened[kBlock];
      for (; begin < end; begin += kBlock) {
        const int64_t count = std::min(kBlock, end - begin);
        ConvertFloats(gradient_dtype_, gradient + begin * SizeOf(gradient_dtype_), DType::kF32,
                      widened, count);
        Add(accumulator + begin, widened, count, out + begin);
      }
    }
  }

  void Add(const float* sum, const float* term, int64_t count, float* out) const {
    const void* const inputs[] = {sum, term};
    add_(inputs, 0.0f, count, out);
  }

  const ElementwiseFunction add_ = FunctionOf(ElementwiseCode::kAdd, DType::kF32);
  const DType gradient_dtype_;
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
