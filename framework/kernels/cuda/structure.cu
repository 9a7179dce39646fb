#include <vector>

#include "framework/kernels/cuda/packs.cuh"

namespace zg::cuda {
namespace {

__global__ void ConstantKernel(float value, float* out) { *out = value; }

class Constant : public Kernel {
 public:
  explicit Constant(const KernelSpec& spec)
      : value_(static_cast<float>(spec.call.attributes.Float("value"))) {}

  Status Run(const KernelArguments& arguments) override {
    return Launch(ConstantKernel, {1, 1}, arguments.stream, value_, arguments.output<float>(0));
  }

 private:
  const float value_;
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
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    int64_t end = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      ZG_RETURN_IF_ERROR(Clear(bucket + end, part.offset - end, stream));
      const char* const input = arguments.input<char>(static_cast<int>(i));
      if (input != bucket + part.offset && part.bytes > 0) {
        ZG_RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(bucket + part.offset, input, part.bytes,
                                                      cudaMemcpyDeviceToDevice, stream),
                                      "a part could not be copied into its bucket"));
      }
      end = part.offset + part.bytes;
    }
    return Clear(bucket + end, bucket_bytes_ - end, stream);
  }

 private:
  struct Part {
    int64_t offset;  // in bytes
    int64_t bytes;
  };

  static Status Clear(char* begin, int64_t bytes, cudaStream_t stream) {
    if (bytes == 0) return Status::Ok();
    return CudaStatus(cudaMemsetAsync(begin, 0, bytes, stream),
                      "the padding of a bucket could not be cleared");
  }

  const int64_t bucket_bytes_;
  std::vector<Part> parts_;  // in the order of their offsets, as the op's shape rule demands
};

// The accumulator is in f32. The output may be either input.
template <typename T>
struct AccumulateBody {
  const float* accumulator;
  const T* gradient;
  float* out;
  const StepContext* step;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    Floats<kCount> sum = LoadFloats<kCount>(gradient + begin);
    if (!step->first_micro_step) {
      const Floats<kCount> before = LoadFloats<kCount>(accumulator + begin);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] = before[i] + sum[i];
    }
    StoreFloats(sum, out + begin);
  }
};

class Accumulate : public Kernel {
 public:
  explicit Accumulate(const KernelSpec& spec)
      : gradient_dtype_(spec.call.inputs[1].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      using T = decltype(zero);
      const AccumulateBody<T> body = {arguments.input<float>(0), arguments.input<T>(1),
                                      arguments.output<float>(0), arguments.device_step};
      return RunPacks<kPackOf<T>>(body, AreAligned(16, body.accumulator, body.gradient, body.out),
                                  num_elements_, arguments.stream);
    });
  }

 private:
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

}  // namespace zg::cuda
