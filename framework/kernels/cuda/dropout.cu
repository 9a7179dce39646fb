#include "framework/base/random.h"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/parted_dim.h"

namespace zg::cuda {
namespace {

// Like RandomKey, which has initializers and therefore cannot be in shared memory.
struct StreamKey {
  uint64_t seed;
  uint64_t stream;
};

// An element is kept if the upper 24 of its random bits are at least the threshold.
template <typename T>
struct DropoutBody {
  const T* x;
  T* y;
  const StepContext* step;
  uint64_t stream;
  uint32_t threshold;
  float scale;

  using Prepared = StreamKey;
  __device__ StreamKey Prepare() const {
    RandomKey key{step->seed};
    key = FoldIn(key, static_cast<uint64_t>(step->step));
    key = FoldIn(key, static_cast<uint64_t>(step->micro_batch));
    key = FoldIn(key, stream);
    return {key.seed, key.stream};
  }

  template <int kCount>
  __device__ void Run(int64_t begin, const StreamKey& key) const {
    RunAt<kCount>(begin, begin, key);
  }

  // For elements from `begin` on, which are the elements from `whole` on of the whole value. Packs
  // begin at multiples of their size there, and so at the first word of a random block.
  template <int kCount>
  __device__ void RunAt(int64_t begin, int64_t whole, const StreamKey& key) const {
    Floats<kCount> values = LoadFloats<kCount>(x + begin);
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint64_t element = static_cast<uint64_t>(whole) + i;
      const RandomBlock bits = RandomBits({key.seed, key.stream}, element / 4);
#pragma unroll
      for (int j = 0; j < 4 && i + j < kCount; ++j) {
        const uint32_t word = bits[kCount == 1 ? element % 4 : j];
        values[i + j] = (word >> 8) >= threshold ? values[i + j] * scale : 0.0f;
      }
    }
    StoreFloats(values, y + begin);
  }
};

// For calls that have some parts of x.
template <typename T>
struct DropoutPartsBody {
  DropoutBody<T> body;
  PartedDim slice;  // the elements within one index of the dims before the one in parts

  using Prepared = StreamKey;
  __device__ StreamKey Prepare() const { return body.Prepare(); }

  template <int kCount>
  __device__ void Run(int64_t begin, const StreamKey& key) const {
    const int64_t whole = begin / slice.size * slice.Total() + slice.IndexOf(begin % slice.size);
    body.template RunAt<kCount>(begin, whole, key);
  }
};

// Both dropout and its gradient: the mask is a function of (seed, step, micro-batch, stream,
// element) and need not be kept in between.
class Dropout : public Kernel {
 public:
  explicit Dropout(const KernelSpec& spec)
      : type_(spec.outputs[0]),
        stream_(static_cast<uint64_t>(spec.call.attributes.Int("stream"))),
        slice_(PartedDim::OfSlices(spec.call, 1)) {
    const double probability = spec.call.attributes.Float("probability");
    threshold_ = static_cast<uint32_t>(probability * 0x1p24);
    scale_ = static_cast<float>(1.0 / (1.0 - probability));
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const DropoutBody<T> body = {arguments.input<T>(0),
                                   arguments.output<T>(0),
                                   arguments.device_step,
                                   stream_,
                                   threshold_,
                                   scale_};
      const bool is_aligned = AreAligned(16, body.x, body.y);
      const int64_t num_elements = type_.shape.num_elements();
      if (slice_.num_parts == 1) {
        return RunPreparedPacks<kPackOf<T>>(body, is_aligned, num_elements, arguments.stream);
      }
      const DropoutPartsBody<T> parts = {body, slice_.At(arguments, 1)};
      const bool in_packs = slice_.PartSize() % kPackOf<T> == 0;
      return RunPreparedPacks<kPackOf<T>>(parts, in_packs && is_aligned, num_elements,
                                          arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const uint64_t stream_;
  const PartedDim slice_;
  uint32_t threshold_;
  float scale_;
};

}  // namespace

void RegisterDropoutKernels(KernelRegistry& registry) {
  registry.Register("dropout", MakeKernel<Dropout>);
  registry.Register("dropout_grad", MakeKernel<Dropout>);
}

}  // namespace zg::cuda
