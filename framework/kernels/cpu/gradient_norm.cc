#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/clip_factor.h"

namespace zg {
namespace {

constexpr int64_t kBlockElements = kSquareSumTermElements;
constexpr int64_t kTileBlocks = 8;
constexpr int64_t kTileElements = kTileBlocks * kBlockElements;

using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));

ZG_INLINE Doubles LoadAsDoubles(const float* data) {
  Floats floats;
  std::memcpy(&floats, data, sizeof(floats));
  return __builtin_convertvector(floats, Doubles);
}

// Lane by lane of the two operands: {a0 + a1, b0 + b1, a2 + a3, b2 + b3, ...}, and likewise for
// pairs and quadruples of lanes.
ZG_INLINE Doubles AddNeighbours(Doubles a, Doubles b) {
  return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
         __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}
ZG_INLINE Doubles AddPairs(Doubles a, Doubles b) {
  return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
         __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
ZG_INLINE Doubles AddHalves(Doubles a, Doubles b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

// The sum of squares of each block. Squares are exact in f64; with s[i] = g[i]^2 + g[i + 8]^2 the
// sum is ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)).
void TileSums(const float* g, int64_t num_tiles, double* sums) {
  Multiversion([=]() ZG_VERSION {
    for (int64_t tile = 0; tile < num_tiles; ++tile) {
      Doubles s[kTileBlocks];
      for (int64_t block = 0; block < kTileBlocks; ++block) {
        const Doubles low = LoadAsDoubles(g + block * kBlockElements);
        const Doubles high = LoadAsDoubles(g + block * kBlockElements + 8);
        s[block] = low * low + high * high;
      }
      const Doubles first = AddPairs(AddNeighbours(s[0], s[1]), AddNeighbours(s[2], s[3]));
      const Doubles second = AddPairs(AddNeighbours(s[4], s[5]), AddNeighbours(s[6], s[7]));
      const Doubles all = AddHalves(first, second);
      std::memcpy(sums, &all, sizeof(all));
      g += kTileElements;
      sums += kTileBlocks;
    }
  });
}

class SquareSum : public Kernel {
 public:
  explicit SquareSum(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        num_elements_(spec.call.inputs[0].shape.num_elements()),
        num_sharing_(NumSharing(spec.threads, num_elements_, kTileElements, 1)) {}

  // The sums of the threads other than the first. They are exact, so they add up to the same words.
  int64_t workspace_bytes() const override { return (num_sharing_ - 1) * kBytesOfThread; }

  Status Run(const KernelArguments& arguments) override {
    int64_t* const words = arguments.output<int64_t>(0);
    const auto words_of = [&](int thread) {
      return thread == 0 ? words
                         : static_cast<int64_t*>(
                               WorkspaceOf(thread - 1, arguments.workspace, kBytesOfThread));
    };
    for (int i = 0; i < num_sharing_; ++i) std::fill_n(words_of(i), kExactSumWords, 0);
    ForEqualRanges(arguments.threads, num_sharing_, num_elements_, kTileElements,
                   [&](int64_t begin, int64_t end, int thread) {
                     AddRange(arguments, begin, end, words_of(thread));
                   });
    for (int i = 1; i < num_sharing_; ++i) {
      const int64_t* const others = words_of(i);
      for (int word = 0; word < kExactSumWords; ++word) words[word] += others[word];
    }
    return Status::Ok();
  }

 private:
  static constexpr int64_t kBytesOfThread = 192;  // kExactSumWords, on cache lines of their own
  static_assert(kBytesOfThread >= kExactSumWords * sizeof(int64_t) && kBytesOfThread % 64 == 0);

  // Adds elements from `first` on, where a tile begins.
  void AddRange(const KernelArguments& arguments, int64_t first, int64_t end,
                int64_t* words) const {
    constexpr int64_t kTilesAtOnce = 32;
    float widened[kTilesAtOnce * kTileElements];
    // Elements [begin, begin + count) of the gradient in f32.
    const auto read = [&](int64_t begin, int64_t count) {
      if (dtype_ == DType::kF32) return arguments.input<float>(0) + begin;
      ConvertFloats(dtype_, arguments.input<char>(0) + begin * SizeOf(dtype_), DType::kF32, widened,
                    count);
      return static_cast<const float*>(widened);
    };
    // Two sums, so that an addition need not wait for the previous one.
    ExactSum even;
    ExactSum odd;
    double sums[kTilesAtOnce * kTileBlocks];
    const auto add = [&](const float* tiles, int64_t num_tiles) {
      TileSums(tiles, num_tiles, sums);
      for (int64_t i = 0; i < num_tiles * kTileBlocks; i += 2) {
        even.Add(sums[i]);
        odd.Add(sums[i + 1]);
      }
    };
    const int64_t num_whole_tiles = end / kTileElements;
    for (int64_t tile = first / kTileElements; tile < num_whole_tiles; tile += kTilesAtOnce) {
      const int64_t num_tiles = std::min(num_whole_tiles - tile, kTilesAtOnce);
      add(read(tile * kTileElements, num_tiles * kTileElements), num_tiles);
    }
    if (const int64_t left = end % kTileElements; left > 0) {
      float tile[kTileElements] = {};
      std::copy_n(read(num_whole_tiles * kTileElements, left), left, tile);
      add(tile, 1);
    }
    even.AddTo(words);
    odd.AddTo(words);
  }

  const DType dtype_;
  const int64_t num_elements_;
  const int num_sharing_;
};

class AddSquareSums : public Kernel {
 public:
  explicit AddSquareSums(const KernelSpec& spec)
      : num_inputs_(static_cast<int>(spec.call.inputs.size())) {}

  Status Run(const KernelArguments& arguments) override {
    ExactSum sum;
    for (int i = 0; i < num_inputs_; ++i) sum.AddWords(arguments.input<int64_t>(i));
    sum.Carry();
    std::fill_n(arguments.output<int64_t>(0), kExactSumWords, 0);
    sum.AddTo(arguments.output<int64_t>(0));
    return Status::Ok();
  }

 private:
  const int num_inputs_;
};

class UpdateControl : public Kernel {
 public:
  explicit UpdateControl(const KernelSpec& spec)
      : max_norm_(spec.call.attributes.Float("max_norm")),
        is_weighted_(spec.call.attributes.Bool("weighted")),
        num_sums_(static_cast<int>(spec.call.inputs.size()) - (is_weighted_ ? 1 : 0)) {}

  Status Run(const KernelArguments& arguments) override {
    ExactSum sum;
    for (int i = 0; i < num_sums_; ++i) sum.AddWords(arguments.input<int64_t>(i));
    const double weight = is_weighted_ ? arguments.input<float>(num_sums_)[0] : 1.0;
    const double norm = std::sqrt(sum.Value()) / weight;
    arguments.output<float>(0)[0] = static_cast<float>(ClipFactor(norm, max_norm_) / weight);
    arguments.output<float>(0)[1] = static_cast<float>(arguments.step->step);
    arguments.output<float>(1)[0] = static_cast<float>(norm);
    return Status::Ok();
  }

 private:
  const double max_norm_;
  const bool is_weighted_;
  const int num_sums_;
};

class GuardedUpdateControl : public Kernel {
 public:
  explicit GuardedUpdateControl(const KernelSpec& spec)
      : max_norm_(spec.call.attributes.Float("max_norm")),
        max_skipped_(spec.call.attributes.Int("max_skipped")),
        is_weighted_(spec.call.attributes.Bool("weighted")),
        num_inputs_(static_cast<int>(spec.call.inputs.size())) {
    for (const TensorType& input : spec.call.inputs) num_sums_ += input.dtype == DType::kI64;
  }

  Status Run(const KernelArguments& arguments) override {
    ExactSum sum;
    for (int i = 0; i < num_sums_; ++i) sum.AddWords(arguments.input<int64_t>(i));
    const double weight = is_weighted_ ? arguments.input<float>(num_sums_)[0] : 1.0;
    const double norm = std::sqrt(sum.Value()) / weight;
    bool is_finite = std::isfinite(norm);
    for (int i = num_sums_; i + 1 < num_inputs_; ++i) {
      is_finite = is_finite && std::isfinite(arguments.input<float>(i)[0]);
    }
    // Small integers, exact in f32.
    float updates = arguments.input<float>(num_inputs_ - 1)[0];
    float skipped = arguments.input<float>(num_inputs_ - 1)[1];
    float* const control = arguments.output<float>(0);
    control[0] = is_finite ? static_cast<float>(ClipFactor(norm, max_norm_) / weight) : 0.0f;
    control[1] = updates + 1;
    if (is_finite) {
      updates += 1;
      skipped = 0;
    } else {
      skipped += 1;
      if (skipped > static_cast<float>(max_skipped_)) return TooManySkipped(skipped);
    }
    arguments.output<float>(1)[0] = static_cast<float>(norm);
    arguments.output<float>(2)[0] = updates;
    arguments.output<float>(2)[1] = skipped;
    return Status::Ok();
  }

 private:
  static Status TooManySkipped(float skipped) {
    return FailedPrecondition(
        "the loss or a gradient was not finite in {} steps in a row, whose updates were left out\n"
        "  hint: lower the learning rate or look at the data; `detect_anomaly` names the first "
        "node",
        skipped);
  }

  const double max_norm_;
  const int64_t max_skipped_;
  const bool is_weighted_;
  const int num_inputs_;
  int num_sums_ = 0;
};

}  // namespace

void RegisterGradientNormKernels(KernelRegistry& registry) {
  registry.Register("square_sum", MakeKernel<SquareSum>);
  registry.Register("add_square_sums", MakeKernel<AddSquareSums>);
  registry.Register("update_control", MakeKernel<UpdateControl>);
  registry.Register("guarded_update_control", MakeKernel<GuardedUpdateControl>);
}

}  // namespace zg
