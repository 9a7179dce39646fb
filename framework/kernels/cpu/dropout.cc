#include <algorithm>
#include <cstdint>

#include "framework/base/random.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/kernels/parted_dim.h"

namespace zg {
namespace {

// Elements whose random bits are made at once. Meanwhile memory is not used, so their values are
// prefetched.
constexpr int64_t kBlock = 256;

// An element is kept if its random bits are at least the threshold, of which the lower 8 are zero.
void KeepBlock(const float* x, const uint32_t* bits, uint32_t threshold, float scale, int64_t count,
               float* y) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i)
      y[i] = elementwise::KeepIf(bits[i] >= threshold, x[i] * scale);
  });
}

// Both dropout and its gradient: the mask is a function of (seed, step, micro-batch, stream,
// element) and need not be kept in between.
class Dropout : public Kernel {
 public:
  explicit Dropout(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        stream_(static_cast<uint64_t>(spec.call.attributes.Int("stream"))),
        num_elements_(spec.outputs[0].shape.num_elements()),
        slice_(PartedDim::OfSlices(spec.call, 1)),
        threads_(spec.threads) {
    const double probability = spec.call.attributes.Float("probability");
    threshold_ = static_cast<uint32_t>(probability * 0x1p24) << 8;
    scale_ = static_cast<float>(1.0 / (1.0 - probability));
  }

  // The random bits of a block, and in 16 bits its values in f32.
  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, slice_.PartSize(), kElementUnit, kCost),
                          block_bytes());
  }

  Status Run(const KernelArguments& arguments) override {
    const StepContext& step = *arguments.step;
    RandomKey key{step.seed};
    key = FoldIn(key, static_cast<uint64_t>(step.step));
    key = FoldIn(key, static_cast<uint64_t>(step.micro_batch));
    key = FoldIn(key, stream_);
    const PartedDim slice = slice_.At(arguments, 1);
    for (int64_t begin = 0; begin < num_elements_; begin += slice.PartSize()) {
      const int64_t whole = begin / slice.size * slice.Total() + slice.IndexOf(begin % slice.size);
      RunPart(arguments, key, begin, whole, slice.PartSize());
    }
    return Status::Ok();
  }

 private:
  static constexpr int64_t kCost = 4;  // mostly of an element's random bits

  int64_t block_bytes() const {
    return kBlock * static_cast<int64_t>(sizeof(uint32_t) + (is_half() ? sizeof(float) : 0));
  }

  // `count` elements from `first` on, which are the elements from `whole` on of the whole value.
  void RunPart(const KernelArguments& arguments, RandomKey key, int64_t first, int64_t whole,
               int64_t count) const {
    ForRanges(arguments.threads, count, kElementUnit, kCost,
              [&](int64_t begin, int64_t end, int thread) {
                RunRange(arguments, key, first, whole, begin, end,
                         WorkspaceOf(thread, arguments.workspace, block_bytes()));
              });
  }

  // Elements [begin, end) of a part.
  void RunRange(const KernelArguments& arguments, RandomKey key, int64_t first, int64_t whole,
                int64_t begin, int64_t end, void* workspace) const {
    const char* const x = arguments.input<char>(0);
    char* const y = arguments.output<char>(0);
    uint32_t* const bits = static_cast<uint32_t*>(workspace);
    float* const values = reinterpret_cast<float*>(bits + kBlock);
    for (; begin < end; begin += kBlock) {
      const int64_t size = std::min(kBlock, end - begin);
      const int64_t begin_bytes = (first + begin) * SizeOf(dtype_);
      PrefetchRow<0>(x + begin_bytes, size * SizeOf(dtype_));
      PrefetchRow<1>(y + begin_bytes, size * SizeOf(dtype_));
      FillBits(key, whole + begin, whole + begin + size, bits);
      if (is_half()) {
        ConvertFloats(dtype_, x + begin_bytes, DType::kF32, values, size);
        KeepBlock(values, bits, threshold_, scale_, size, values);
        ConvertFloats(DType::kF32, values, dtype_, y + begin_bytes, size);
      } else {
        KeepBlock(reinterpret_cast<const float*>(x + begin_bytes), bits, threshold_, scale_, size,
                  reinterpret_cast<float*>(y + begin_bytes));
      }
    }
  }

  bool is_half() const { return dtype_ != DType::kF32; }

  const DType dtype_;
  const uint64_t stream_;
  const int64_t num_elements_;
  const PartedDim slice_;
  const int threads_;
  uint32_t threshold_;
  float scale_;
};

}  // namespace

void RegisterDropoutKernels(KernelRegistry& registry) {
  registry.Register("dropout", MakeKernel<Dropout>);
  registry.Register("dropout_grad", MakeKernel<Dropout>);
}

}  // namespace zg
