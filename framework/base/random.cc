#include "framework/base/random.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "framework/base/check.h"

// Highway compiles the part up to HWY_AFTER_NAMESPACE once per instruction set. Only exactly
// rounded operations are used, and no fused multiply-add, so that all of them give the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/base/random.cc"  // NOLINT
#include <hwy/foreach_target.h>
// foreach_target.h must be included first.
#include <hwy/highway.h>

#include "framework/base/instruction_set.h"

HWY_BEFORE_NAMESPACE();
namespace zg::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Bits = hn::ScalableTag<uint32_t>;
using Floats = hn::ScalableTag<float>;
using Ints = hn::ScalableTag<int32_t>;
using BitVector = hn::Vec<Bits>;
using FloatVector = hn::Vec<Floats>;
constexpr size_t kMaxLanes = hn::MaxLanes(Bits());

// Four vectors of consecutive elements of a stream, from that of a block's first word on.
template <typename Vector>
struct Elements {
  Vector first, second, third, fourth;
};
using BitElements = Elements<BitVector>;
using FloatElements = Elements<FloatVector>;

#if HWY_TARGET == HWY_SCALAR  // one lane: no even ones

HWY_INLINE BitElements PhiloxElements(RandomKey key, uint64_t first_block) {
  const Bits bits;
  const RandomBlock block = RandomBits(key, first_block);
  return {hn::Set(bits, block[0]), hn::Set(bits, block[1]), hn::Set(bits, block[2]),
          hn::Set(bits, block[3])};
}

#else

// The even lanes of a in even lanes, and those of b in odd ones.
template <typename Vector>
HWY_INLINE Vector InterleaveEven(Vector a, Vector b) {
  return hn::OddEven(hn::DupEven(b), a);
}

// The odd lanes of a in even lanes, and those of b in odd ones.
template <typename Vector>
HWY_INLINE Vector InterleaveOdd(Vector a, Vector b) {
  return hn::OddEven(b, hn::DupOdd(a));
}

// The words of blocks, a block in each even lane, whose products fill both; what is in the odd
// lanes is not used.
struct Words {
  BitVector word0, word1, word2, word3;
};

HWY_INLINE Words PhiloxRound(const Words& c, uint32_t key0, uint32_t key1) {
  const Bits bits;
  const auto product0 = hn::MulEven(c.word0, hn::Set(bits, 0xD2511F53u));
  const auto product1 = hn::MulEven(c.word2, hn::Set(bits, 0xCD9E8D57u));
  const BitVector high0 = hn::BitCast(bits, hn::ShiftRight<32>(product0));
  const BitVector high1 = hn::BitCast(bits, hn::ShiftRight<32>(product1));
  return {hn::Xor3(high1, c.word1, hn::Set(bits, key0)), hn::BitCast(bits, product1),
          hn::Xor3(high0, c.word3, hn::Set(bits, key1)), hn::BitCast(bits, product0)};
}

// Two halves, in which the rounds of one need not wait for those of the other.
HWY_INLINE BitElements PhiloxElements(RandomKey key, uint64_t first_block) {
  using Pairs = hn::Repartition<uint64_t, Bits>;
  const Bits bits;
  const Pairs pairs;
  // Interleaving works on 128 bits, two even lanes. The blocks of the first of the two come before
  // those of the second ones, so that it leaves all of them in order.
  const uint32_t num_blocks = static_cast<uint32_t>(hn::Lanes(pairs));
  const BitVector lane = hn::Iota(bits, 0u);
  const BitVector is_second = hn::And(hn::ShiftRight<1>(lane), hn::Set(bits, 1u));
  const BitVector order =
      hn::Add(hn::ShiftRight<2>(lane), hn::Mul(is_second, hn::Set(bits, num_blocks / 2)));
  const BitVector base = hn::Set(bits, static_cast<uint32_t>(first_block));
  const auto counters = [=](uint32_t first) HWY_ATTR {
    const BitVector c0 = hn::Add(base, hn::Add(order, hn::Set(bits, first)));
    const BitVector carry = hn::IfThenElseZero(hn::Lt(c0, base), hn::Set(bits, 1u));
    const BitVector c1 = hn::Add(hn::Set(bits, static_cast<uint32_t>(first_block >> 32)), carry);
    return Words{c0, c1, hn::Set(bits, static_cast<uint32_t>(key.stream)),
                 hn::Set(bits, static_cast<uint32_t>(key.stream >> 32))};
  };
  Words low = counters(0);
  Words high = counters(num_blocks);
  uint32_t key0 = static_cast<uint32_t>(key.seed);
  uint32_t key1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    low = PhiloxRound(low, key0, key1);
    high = PhiloxRound(high, key0, key1);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  struct Half {
    BitVector first, second;
  };
  const auto in_order = [=](const Words& words) HWY_ATTR {
    const auto words01 = hn::BitCast(pairs, InterleaveEven(words.word0, words.word1));
    const auto words23 = hn::BitCast(pairs, InterleaveEven(words.word2, words.word3));
    return Half{hn::BitCast(bits, hn::InterleaveLower(pairs, words01, words23)),
                hn::BitCast(bits, hn::InterleaveUpper(pairs, words01, words23))};
  };
  const Half low_elements = in_order(low);
  const Half high_elements = in_order(high);
  return {low_elements.first, low_elements.second, high_elements.first, high_elements.second};
}

#endif

HWY_INLINE FloatVector Uniform(BitVector word) {
  const Floats floats;
  const auto integer = hn::BitCast(Ints(), hn::ShiftRight<8>(word));
  return hn::Mul(hn::ConvertTo(floats, integer), hn::Set(floats, 0x1p-24f));
}

// a * b + c, rounded twice.
HWY_INLINE FloatVector MulThenAdd(FloatVector a, FloatVector b, float c) {
  return hn::Add(hn::Mul(a, b), hn::Set(Floats(), c));
}

// ln(x) for normal x > 0; the polynomial of Cephes' logf.
HWY_INLINE FloatVector Log(FloatVector x) {
  const Floats floats;
  const Ints ints;
  const auto bits = hn::BitCast(ints, x);
  // x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)).
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(ints, 0x3f3504f3)));
  const FloatVector m = hn::BitCast(floats, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const FloatVector e = hn::ConvertTo(floats, exponent);
  const FloatVector f = hn::Sub(m, hn::Set(floats, 1.0f));
  const FloatVector square = hn::Mul(f, f);
  FloatVector y = hn::Set(floats, 7.0376836292e-2f);
  y = MulThenAdd(y, f, -1.1514610310e-1f);
  y = MulThenAdd(y, f, 1.1676998740e-1f);
  y = MulThenAdd(y, f, -1.2420140846e-1f);
  y = MulThenAdd(y, f, 1.4249322787e-1f);
  y = MulThenAdd(y, f, -1.6668057665e-1f);
  y = MulThenAdd(y, f, 2.0000714765e-1f);
  y = MulThenAdd(y, f, -2.4999993993e-1f);
  y = MulThenAdd(y, f, 3.3333331174e-1f);
  y = hn::Mul(hn::Mul(y, f), square);
  y = hn::Add(y, hn::Mul(e, hn::Set(floats, -2.12194440e-4f)));
  y = hn::Sub(y, hn::Mul(square, hn::Set(floats, 0.5f)));
  return hn::Add(hn::Add(f, y), hn::Mul(e, hn::Set(floats, 0.693359375f)));
}

struct SinCos {
  FloatVector sin, cos;
};

// For 2 pi turns / 2^32; the polynomials of Cephes' sinf and cosf.
HWY_INLINE SinCos SinCosOfTurns(BitVector turns) {
  const Bits bits;
  const Floats floats;
  const Ints ints;
  const BitVector quadrant = hn::ShiftRight<30>(hn::Add(turns, hn::Set(bits, 1u << 29)));
  const auto rest = hn::BitCast(ints, hn::Sub(turns, hn::ShiftLeft<30>(quadrant)));
  const FloatVector x = hn::Mul(hn::ConvertTo(floats, rest), hn::Set(floats, 0x1.921fb6p-30f));
  const FloatVector square = hn::Mul(x, x);
  FloatVector sin = hn::Set(floats, -1.9515295891e-4f);
  sin = MulThenAdd(sin, square, 8.3321608736e-3f);
  sin = MulThenAdd(sin, square, -1.6666654611e-1f);
  sin = hn::Add(hn::Mul(hn::Mul(sin, square), x), x);
  FloatVector cos = hn::Set(floats, 2.443315711809948e-5f);
  cos = MulThenAdd(cos, square, -1.388731625493765e-3f);
  cos = MulThenAdd(cos, square, 4.166664568298827e-2f);
  cos = hn::Sub(hn::Mul(hn::Mul(cos, square), square), hn::Mul(square, hn::Set(floats, 0.5f)));
  cos = hn::Add(cos, hn::Set(floats, 1.0f));
  // A rotation by one quadrant takes (sin, cos) to (cos, -sin).
  const BitVector one = hn::Set(bits, 1u);
  const auto odd = hn::RebindMask(floats, hn::Eq(hn::And(quadrant, one), one));
  const FloatVector sin_sign = hn::BitCast(floats, hn::ShiftLeft<31>(hn::ShiftRight<1>(quadrant)));
  const FloatVector cos_sign =
      hn::BitCast(floats, hn::ShiftLeft<31>(hn::ShiftRight<1>(hn::Add(quadrant, one))));
  return {hn::Xor(hn::IfThenElse(odd, cos, sin), sin_sign),
          hn::Xor(hn::IfThenElse(odd, sin, cos), cos_sign)};
}

struct NormalPair {
  FloatVector first, second;
};

HWY_INLINE NormalPair BoxMuller(BitVector radius_word, BitVector angle_word) {
  const Floats floats;
  // In (0, 1]: never zero, and finer than 2^-24 near zero, which determines the tail.
  const auto odd = hn::Or(hn::ShiftRight<1>(radius_word), hn::Set(Bits(), 1u));
  const FloatVector u =
      hn::Mul(hn::ConvertTo(floats, hn::BitCast(Ints(), odd)), hn::Set(floats, 0x1p-31f));
  const FloatVector radius = hn::Sqrt(hn::Mul(hn::Set(floats, -2.0f), Log(u)));
  const SinCos angle = SinCosOfTurns(angle_word);
  return {hn::Mul(radius, angle.cos), hn::Mul(radius, angle.sin)};
}

// The normals of two vectors of elements: each pair of elements is a radius and an angle.
HWY_INLINE NormalPair NormalsOf(BitVector first, BitVector second) {
#if HWY_TARGET == HWY_SCALAR
  return BoxMuller(first, second);
#else
  const NormalPair pair = BoxMuller(InterleaveEven(first, second), InterleaveOdd(first, second));
  return {InterleaveEven(pair.first, pair.second), InterleaveOdd(pair.first, pair.second)};
#endif
}

// Writes elements [begin, end) of the stream; `convert` makes Elements of values from BitElements.
template <typename Value, typename Convert>
HWY_INLINE void Fill(RandomKey key, uint64_t begin, uint64_t end, Value* out,
                     const Convert& convert) {
  const hn::ScalableTag<Value> tag;
  const size_t lanes = hn::Lanes(tag);
  const size_t group = 4 * lanes;
  const auto store = [=](const auto& values, Value* to) HWY_ATTR {
    hn::StoreU(values.first, tag, to);
    hn::StoreU(values.second, tag, to + lanes);
    hn::StoreU(values.third, tag, to + 2 * lanes);
    hn::StoreU(values.fourth, tag, to + 3 * lanes);
  };
  uint64_t block = begin / 4;
  size_t skip = begin % 4;
  uint64_t remaining = end - begin;
  while (remaining > 0) {
    const auto values = convert(PhiloxElements(key, block));
    size_t written = group;
    if (skip == 0 && remaining >= group) {
      store(values, out);
    } else {
      Value whole[4 * kMaxLanes];
      store(values, whole);
      written = std::min<uint64_t>(group - skip, remaining);
      std::memcpy(out, whole + skip, written * sizeof(Value));
    }
    block += group / 4;
    skip = 0;
    out += written;
    remaining -= written;
  }
}

void FillBitsImpl(RandomKey key, uint64_t begin, uint64_t end, uint32_t* out) {
  Fill(key, begin, end, out, [](const BitElements& elements) HWY_ATTR { return elements; });
}

void FillUniformImpl(RandomKey key, uint64_t begin, uint64_t end, float low, float high,
                     float* out) {
  const Floats floats;
  const FloatVector offset = hn::Set(floats, low);
  const FloatVector scale = hn::Set(floats, high - low);
  const auto scaled = [=](BitVector word)
                          HWY_ATTR { return hn::Add(offset, hn::Mul(scale, Uniform(word))); };
  Fill(key, begin, end, out, [=](const BitElements& elements) HWY_ATTR {
    return FloatElements{scaled(elements.first), scaled(elements.second), scaled(elements.third),
                         scaled(elements.fourth)};
  });
}

void FillNormalImpl(RandomKey key, uint64_t begin, uint64_t end, float mean, float stddev,
                    float* out) {
  const Floats floats;
  const FloatVector offset = hn::Set(floats, mean);
  const FloatVector scale = hn::Set(floats, stddev);
  const auto scaled = [=](FloatVector normal)
                          HWY_ATTR { return hn::Add(offset, hn::Mul(scale, normal)); };
  Fill(key, begin, end, out, [=](const BitElements& elements) HWY_ATTR {
    const NormalPair low = NormalsOf(elements.first, elements.second);
    const NormalPair high = NormalsOf(elements.third, elements.fourth);
    return FloatElements{scaled(low.first), scaled(low.second), scaled(high.first),
                         scaled(high.second)};
  });
}

}  // namespace zg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zg {

HWY_EXPORT(FillBitsImpl);
HWY_EXPORT(FillUniformImpl);
HWY_EXPORT(FillNormalImpl);

float NormalAt(RandomKey key, uint64_t element) {
  // Only the pair's words matter to the arithmetic; the pair's position in the stream does not.
  const uint64_t begin = element / 4 * 4;
  float block[4];
  ZG_HWY_DISPATCH(FillNormalImpl)(key, begin, begin + 4, 0.0f, 1.0f, block);
  return block[element % 4];
}

uint64_t UniformBelow(RandomKey key, uint64_t index, uint64_t bound) {
  ZG_CHECK(bound > 0, "UniformBelow: the bound is 0");
  const RandomBlock block = RandomBits(key, index);
  const uint64_t bits = block[0] | uint64_t{block[1]} << 32;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * bound >> 64);
}

void FillBits(RandomKey key, uint64_t begin, uint64_t end, uint32_t* out) {
  ZG_CHECK(begin <= end, "FillBits: begin {} > end {}", begin, end);
  ZG_HWY_DISPATCH(FillBitsImpl)(key, begin, end, out);
}

void FillUniform(RandomKey key, uint64_t begin, uint64_t end, float low, float high, float* out) {
  ZG_CHECK(begin <= end, "FillUniform: begin {} > end {}", begin, end);
  ZG_HWY_DISPATCH(FillUniformImpl)(key, begin, end, low, high, out);
}

void FillNormal(RandomKey key, uint64_t begin, uint64_t end, float mean, float stddev, float* out) {
  ZG_CHECK(begin <= end, "FillNormal: begin {} > end {}", begin, end);
  ZG_HWY_DISPATCH(FillNormalImpl)(key, begin, end, mean, stddev, out);
}

RandomKey FoldIn(RandomKey key, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return FoldIn(key, hash);
}

}  // namespace zg
#endif  // HWY_ONCE
