#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "framework/kernels/adam_attributes.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/code_finder.h"
#include "framework/kernels/math/optimizer_math.h"
#include "framework/kernels/math/quantised_math.h"
#include "framework/kernels/math/vector_math.h"
#include "framework/ops/quantised_blocks.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// The moments of one block.
struct Moments {
  float m[kQuantisedBlock];
  float v[kQuantisedBlock];
};

constexpr int32_t kInfinityBits = 0x7f800000;

ZG_INLINE int32_t MagnitudeBits(float x) { return BitCast<int32_t>(x) & 0x7fffffff; }

// Those of a moment; all updates share them.
struct Codes {
  explicit Codes(bool is_signed) : table(MakeCodeTable(is_signed)), finder(table) {}

  const CodeTable table;
  const CodeFinder finder;
};
const Codes& CodesOfM() {
  static const Codes codes(/*is_signed=*/true);
  return codes;
}
const Codes& CodesOfV() {
  static const Codes codes(/*is_signed=*/false);
  return codes;
}

void Decode(const CodeTable& table, const uint8_t* codes, float scale, int64_t count,
            float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = table.values[codes[i]] * scale;
}

// The largest magnitude, NaN aside.
float ScaleOf(const float* values, int64_t count) {
  return Multiversion([=]() ZG_VERSION {
    int32_t largest = 0;  // magnitudes have the order of their bits
    for (int64_t i = 0; i < count; ++i) {
      const int32_t magnitude = MagnitudeBits(values[i]);
      const int32_t number = magnitude & -static_cast<int32_t>(magnitude <= kInfinityBits);
      largest = largest > number ? largest : number;
    }
    return BitCast<float>(largest);
  });
}

// Returns the scale. Divides the values by it.
float Encode(const CodeFinder& finder, float* values, int64_t count, uint8_t* codes) {
  const float scale = ScaleOf(values, count);
  const float divisor = scale > 0.0f ? scale : 1.0f;
  int32_t keys[kQuantisedBlock];
  Multiversion([=, keys = &keys[0]]() ZG_VERSION {
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
      values[i] /= divisor;
      keys[i] = CodeFinder::KeyOf(values[i]);
    }
  });
  for (int64_t i = 0; i < count; ++i) codes[i] = finder.CodeOf(values[i], keys[i]);
  return scale;
}

// Returns whether the parameters are finite.
template <typename Gradient>
bool Step(const Gradient* g, const AdamFactors& factors, int64_t count, float* p,
          Moments* moments) {
  float* const m = moments->m;
  float* const v = moments->v;
  return Multiversion([=]() ZG_VERSION {
    const AdamFactors f = factors;
    int32_t largest = 0;
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
      const AdamResult next = AdamStep({p[i], ToF32(g[i]), m[i], v[i]}, f);
      p[i] = next.p;
      m[i] = next.m;
      v[i] = next.v;
      const int32_t magnitude = MagnitudeBits(next.p);
      largest = largest > magnitude ? largest : magnitude;
    }
    return largest < kInfinityBits;
  });
}

class Adam8Update : public Kernel {
 public:
  explicit Adam8Update(const KernelSpec& spec)
      : gradient_dtype_(spec.call.inputs[1].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()),
        has_control_(spec.call.inputs.size() == 7),
        attributes_(AdamAttributesOf(spec.call.attributes)),
        after_updates_(static_cast<double>(spec.call.attributes.Int("after_updates"))),
        of_m_(CodesOfM()),
        of_v_(CodesOfV()) {
    for (const TensorType& output : spec.outputs) output_bytes_.push_back(output.bytes());
  }

  Status Run(const KernelArguments& arguments) override {
    for (size_t i = 0; i < output_bytes_.size(); ++i) {
      const void* const old_values = arguments.inputs[i == 0 ? 0 : i + 1];
      if (arguments.outputs[i] == old_values) continue;
      std::memcpy(arguments.outputs[i], old_values, output_bytes_[i]);
    }
    const float* const control = has_control_ ? arguments.input<float>(6) : nullptr;
    const float factor = control == nullptr ? 1.0f : control[0];
    if (factor == 0.0f) return Status::Ok();
    const double number =
        control == nullptr ? static_cast<double>(arguments.step->step) : control[1];
    const AdamFactors factors =
        MakeAdamFactors(attributes_, arguments.step->lr_factor, factor, number - after_updates_);
    std::atomic<bool> is_finite{true};
    ForRanges(arguments.threads, num_elements_, kQuantisedBlock, kCost,
              [&](int64_t begin, int64_t end, int) {
                for (; begin < end; begin += kQuantisedBlock) {
                  if (!UpdateBlock(arguments, factors, begin)) is_finite = false;
                }
              });
    if (is_finite || !arguments.step->stop_on_non_finite) return Status::Ok();
    return FailedPrecondition("an updated parameter is not finite");
  }

 private:
  static constexpr int64_t kCost = 16;  // mostly of an element's codes

  // Returns whether its parameters are finite.
  bool UpdateBlock(const KernelArguments& arguments, const AdamFactors& factors,
                   int64_t begin) const {
    const int64_t count = std::min(kQuantisedBlock, num_elements_ - begin);
    const int64_t block = begin / kQuantisedBlock;
    float* const p = arguments.output<float>(0) + begin;
    uint8_t* const m_codes = arguments.output<uint8_t>(1) + begin;
    uint8_t* const v_codes = arguments.output<uint8_t>(3) + begin;
    float* const m_scale = arguments.output<float>(2) + block;
    float* const v_scale = arguments.output<float>(4) + block;
    Moments moments;
    Decode(of_m_.table, m_codes, *m_scale, count, moments.m);
    Decode(of_v_.table, v_codes, *v_scale, count, moments.v);
    const bool is_finite = WithFloatType(gradient_dtype_, [&](auto zero) {
      return Step(arguments.input<decltype(zero)>(1) + begin, factors, count, p, &moments);
    });
    *m_scale = Encode(of_m_.finder, moments.m, count, m_codes);
    *v_scale = Encode(of_v_.finder, moments.v, count, v_codes);
    return is_finite;
  }

  const DType gradient_dtype_;
  const int64_t num_elements_;
  const bool has_control_;
  const AdamAttributes attributes_;
  const double after_updates_;
  const Codes& of_m_;
  const Codes& of_v_;
  std::vector<int64_t> output_bytes_;
};

// The op's shape rule has checked the types, codes in u8 among them.
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(std::make_unique<Adam8Update>(spec));
}

}  // namespace

void RegisterQuantisedUpdateKernels(KernelRegistry& registry) {
  registry.Register("adam8_update", Make);
}

}  // namespace zg
