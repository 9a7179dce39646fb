#include "framework/base/random.h"

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"

namespace zg {
namespace {

constexpr int64_t kBlock = 2048;  // elements that stay in the first-level cache

using FillFunction = void (*)(RandomKey key, uint64_t begin, uint64_t end, float first,
                              float second, float* out);

class Draw : public Kernel {
 public:
  Draw(const KernelSpec& spec, FillFunction fill, const char* first, const char* second)
      : fill_(fill),
        first_(static_cast<float>(spec.call.attributes.Float(first))),
        second_(static_cast<float>(spec.call.attributes.Float(second))),
        dtype_(spec.outputs[0].dtype),
        stream_(static_cast<uint64_t>(spec.call.attributes.Int("stream"))),
        num_elements_(spec.outputs[0].shape.num_elements()),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return WorkspaceBytes(NumSharing(threads_, num_elements_, kElementUnit, kCost), kBlockBytes);
  }

  Status Run(const KernelArguments& arguments) override {
    const StepContext& step = *arguments.step;
    RandomKey key{step.seed};
    key = FoldIn(key, static_cast<uint64_t>(step.step));
    key = FoldIn(key, static_cast<uint64_t>(step.micro_batch));
    key = FoldIn(key, stream_);
    ForRanges(arguments.threads, num_elements_, kElementUnit, kCost,
              [&](int64_t begin, int64_t end, int thread) {
                Fill(key, begin, end, arguments.outputs[0],
                     WorkspaceOf(thread, arguments.workspace, kBlockBytes));
              });
    return Status::Ok();
  }

 private:
  static constexpr int64_t kCost = 8;  // of sampling an element
  static constexpr int64_t kBlockBytes = kBlock * static_cast<int64_t>(sizeof(float));

  void Fill(RandomKey key, int64_t begin, int64_t end, void* y, void* workspace) const {
    if (dtype_ == DType::kF32) {
      return fill_(key, begin, end, first_, second_, static_cast<float*>(y) + begin);
    }
    float* const block = static_cast<float*>(workspace);
    for (; begin < end; begin += kBlock) {
      const int64_t count = std::min(kBlock, end - begin);
      fill_(key, begin, begin + count, first_, second_, block);
      ConvertFloats(DType::kF32, block, dtype_, static_cast<char*>(y) + begin * SizeOf(dtype_),
                    count);
    }
  }

  const FillFunction fill_;
  const float first_;
  const float second_;
  const DType dtype_;
  const uint64_t stream_;
  const int64_t num_elements_;
  const int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeUniform(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return std::unique_ptr<Kernel>(std::make_unique<Draw>(spec, FillUniform, "low", "high"));
}

StatusOr<std::unique_ptr<Kernel>> MakeNormal(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return std::unique_ptr<Kernel>(std::make_unique<Draw>(spec, FillNormal, "mean", "stddev"));
}

}  // namespace

void RegisterRandomKernels(KernelRegistry& registry) {
  registry.Register("uniform", MakeUniform);
  registry.Register("normal", MakeNormal);
}

}  // namespace zg
