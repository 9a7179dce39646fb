#include "framework/base/random.h"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/normal_math.h"

namespace zg::cuda {
namespace {

// Like RandomKey, which has initializers and therefore cannot be in shared memory.
struct StreamKey {
  uint64_t seed;
  uint64_t stream;
};

enum class Distribution { kUniform, kNormal };

// y = first + second * u, with u in [0, 1) or a standard normal. Packs begin at multiples of their
// size, and so at the first word of a random block.
template <Distribution kDistribution, typename T>
struct DrawBody {
  T* y;
  const StepContext* step;
  uint64_t stream;
  float first;
  float second;

  using Prepared = StreamKey;
  __device__ StreamKey Prepare() const {
    RandomKey key{step->seed};
    key = FoldIn(key, static_cast<uint64_t>(step->step));
    key = FoldIn(key, static_cast<uint64_t>(step->micro_batch));
    key = FoldIn(key, stream);
    return {key.seed, key.stream};
  }

  static __device__ float Value(const RandomBlock& words, uint64_t word) {
    if (kDistribution == Distribution::kUniform) return Uniform01(words[word]);
    const NormalPair pair = NormalsOf(words[word / 2 * 2], words[word / 2 * 2 + 1]);
    return word % 2 == 0 ? pair.first : pair.second;
  }

  template <int kCount>
  __device__ void Run(int64_t begin, const StreamKey& key) const {
    Floats<kCount> values;
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint64_t element = static_cast<uint64_t>(begin) + i;
      const RandomBlock words = RandomBits({key.seed, key.stream}, element / 4);
#pragma unroll
      for (int j = 0; j < 4 && i + j < kCount; ++j) {
        values[i + j] = first + second * Value(words, kCount == 1 ? element % 4 : j);
      }
    }
    StoreFloats(values, y + begin);
  }
};

template <Distribution kDistribution>
class Draw : public Kernel {
 public:
  explicit Draw(const KernelSpec& spec)
      : type_(spec.outputs[0]), stream_(static_cast<uint64_t>(spec.call.attributes.Int("stream"))) {
    const bool is_uniform = kDistribution == Distribution::kUniform;
    first_ = static_cast<float>(spec.call.attributes.Float(is_uniform ? "low" : "mean"));
    second_ = static_cast<float>(spec.call.attributes.Float(is_uniform ? "high" : "stddev"));
    if (is_uniform) second_ -= first_;
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const DrawBody<kDistribution, T> body = {arguments.output<T>(0), arguments.device_step,
                                               stream_, first_, second_};
      return RunPreparedPacks<kPackOf<T>>(body, AreAligned(16, body.y), type_.shape.num_elements(),
                                          arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const uint64_t stream_;
  float first_;
  float second_;
};

}  // namespace

void RegisterRandomKernels(KernelRegistry& registry) {
  registry.Register("uniform", MakeKernel<Draw<Distribution::kUniform>>);
  registry.Register("normal", MakeKernel<Draw<Distribution::kNormal>>);
}

}  // namespace zg::cuda
