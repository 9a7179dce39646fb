#include "framework/kernels/cpu/attention_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "framework/kernels/cpu/gemm_pairs.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/vector_math.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// A bf16 that the processor's instruction rounds (HasPairProducts): like FromF32, except that
// denormal numbers become 0, which is how its products treat them anyway.
struct ProcessorBFloat16 {
  BFloat16 value;
};
#define ZG_PROCESSOR_BF16 __attribute__((target("arch=x86-64-v4")))

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Queries whose maxima and sums stay in registers on the way down.
constexpr int64_t kColumn = kScoreColumn;

// Rows of a column: all its queries see the first `open` keys, and query i sees no key after open +
// i.
struct Column {
  int64_t open;
  int64_t seen;  // keys that any of its queries sees
  int64_t keys;
  int64_t stride;
  float scale;           // from products to scores
  float gradient_scale;  // from scores' gradients to products' gradients
  float sink;            // a score that sums begin with; -infinity: none
};

// Calls body(row, hidden) for each visible key: the first `hidden` queries do not see it.
template <typename Body>
ZG_INLINE void ForSeenKeys(const Column& column, const Body& body) {
  for (int64_t key = 0; key < column.open; ++key) body(key * column.stride, 0);
  for (int64_t key = column.open; key < column.seen; ++key) {
    body(key * column.stride, static_cast<int>(key - column.open));
  }
}

// Separate from the computation of the values: GCC 12 does not vectorise both in one loop for f16.
template <typename T>
ZG_INLINE void RoundColumn(const float* values, T* rounded) {
  for (int i = 0; i < kColumn; ++i) rounded[i] = FromF32<T>(values[i]);
}

// For functions with ZG_PROCESSOR_BF16. Uses assembly, because inlined functions may not use
// intrinsics that their own target lacks.
ZG_INLINE void RoundColumn(const float* values, ProcessorBFloat16* rounded) {
  for (int64_t i = 0; i < kColumn; i += 2 * kLanes) {
    const Lanes low = LoadLanes(values + i);
    const Lanes high = LoadLanes(values + i + kLanes);
    Lanes both;
    asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(high), "v"(low));
    std::memcpy(rounded + i, &both, sizeof(both));
  }
}

template <typename T>
ZG_INLINE void ClearUnseenKeys(const Column& column, T* rows) {
  for (int64_t key = column.seen; key < column.keys; ++key) {
    std::fill_n(rows + key * column.stride, kColumn, T{});
  }
}

template <typename T>
ZG_INLINE void SoftmaxColumnOf(const Column& column, const float* products, T* weights,
                               float* maxima_out, float* sums_out) {
  const float scale = column.scale;
  float maxima[kColumn];
  float sums[kColumn];
  const float sink = column.sink;
  for (int i = 0; i < kColumn; ++i) maxima[i] = sink;
  ForSeenKeys(
      column, [&](int64_t row, int hidden) __attribute__((always_inline)) {
        for (int i = 0; i < kColumn; ++i) {
          const float score = i < hidden ? -kInfinity : products[row + i] * scale;
          maxima[i] = maxima[i] > score ? maxima[i] : score;
        }
      });
  for (int i = 0; i < kColumn; ++i) sums[i] = sink == -kInfinity ? 0.0f : Exp(sink - maxima[i]);
  ForSeenKeys(
      column, [&](int64_t row, int hidden) __attribute__((always_inline)) {
        float weight[kColumn];
        for (int i = 0; i < kColumn; ++i) {
          const float seen = Exp(products[row + i] * scale - maxima[i]);
          weight[i] = i < hidden ? 0.0f : seen;
          sums[i] += weight[i];
        }
        RoundColumn(weight, weights + row);
      });
  ClearUnseenKeys(column, weights);
  for (int i = 0; i < kColumn; ++i) maxima_out[i] = maxima[i];
  for (int i = 0; i < kColumn; ++i) sums_out[i] = sums[i];
}
template <typename T>
void SoftmaxColumn(const Column& column, const float* products, T* weights, float* maxima,
                   float* sums) {
  Multiversion([=]() ZG_VERSION { SoftmaxColumnOf(column, products, weights, maxima, sums); });
}
ZG_PROCESSOR_BF16 void SoftmaxColumn(const Column& column, const float* products,
                                     ProcessorBFloat16* weights, float* maxima, float* sums) {
  SoftmaxColumnOf(column, products, weights, maxima, sums);
}

template <typename T>
ZG_INLINE void SoftmaxGradColumnOf(const Column& column, const QueryLanes& queries,
                                   const float* products, const float* dweights, T* weights,
                                   T* dproducts) {
  const float scale = column.scale;
  const float gradient_scale = column.gradient_scale;
  float log_sum_exp[kColumn];
  float dot[kColumn];
  for (int i = 0; i < kColumn; ++i) log_sum_exp[i] = queries.log_sum_exp[i];
  for (int i = 0; i < kColumn; ++i) dot[i] = queries.dot[i];
  ForSeenKeys(
      column, [&](int64_t row, int hidden) __attribute__((always_inline)) {
        float weight[kColumn];
        float dproduct[kColumn];
        for (int i = 0; i < kColumn; ++i) {
          const float seen = Exp(products[row + i] * scale - log_sum_exp[i]);
          const float dseen = seen * (dweights[row + i] - dot[i]) * gradient_scale;
          weight[i] = i < hidden ? 0.0f : seen;
          dproduct[i] = i < hidden ? 0.0f : dseen;
        }
        RoundColumn(weight, weights + row);
        RoundColumn(dproduct, dproducts + row);
      });
  ClearUnseenKeys(column, weights);
  ClearUnseenKeys(column, dproducts);
}
template <typename T>
void SoftmaxGradColumn(const Column& column, const QueryLanes& queries, const float* products,
                       const float* dweights, T* weights, T* dproducts) {
  Multiversion([=]() ZG_VERSION {
    SoftmaxGradColumnOf(column, queries, products, dweights, weights, dproducts);
  });
}
ZG_PROCESSOR_BF16 void SoftmaxGradColumn(const Column& column, const QueryLanes& queries,
                                         const float* products, const float* dweights,
                                         ProcessorBFloat16* weights, ProcessorBFloat16* dproducts) {
  SoftmaxGradColumnOf(column, queries, products, dweights, weights, dproducts);
}

// Not with the address sanitizer: GCC 12 assumes that arrays on its stack are aligned to 64 bytes,
// which they are not (GCC bug 110027).
bool ProcessorRounds() {
#if defined(__SANITIZE_ADDRESS__)
  return false;
#else
  return HasPairProducts();
#endif
}

// Calls f with a zero of the type to which scores are converted as operands.
template <typename F>
void WithScoreType(const AttentionShape& shape, const F& f) {
  const bool for_pairs = shape.dtype == DType::kBF16 && shape.method->packed_k == 2;
  if (for_pairs && ProcessorRounds()) return f(ProcessorBFloat16());
  WithFloatType(shape.dtype, f);
}

// Calls body(first, column) for the columns of a block of queries. With options the products are
// scores already (attention_options.h).
template <typename Body>
void ForColumns(const AttentionShape& shape, int64_t begin, const Body& body) {
  const bool is_plain = shape.is_plain();
  Column column;
  column.keys = shape.end_key(begin) - shape.first_key(begin);
  column.stride = shape.block;
  column.scale = is_plain ? shape.scale : 1.0f;
  column.gradient_scale = shape.scale;
  column.sink = -kInfinity;
  for (int64_t first = 0; first < shape.num_queries(begin); first += kColumn) {
    const bool cuts = shape.causal && is_plain;
    column.open = cuts ? std::min(begin + first + shape.offset(), column.keys) : column.keys;
    column.seen = std::min(column.open + kColumn, column.keys);
    body(shape.first_key(begin) * shape.block + first, first, column);
  }
}

template <typename T>
float Dot(const T* a, const T* b, int64_t count) {
  return Multiversion([=]() ZG_VERSION {
    return SumTerms(
        count, [=](const auto& load)
                   __attribute__((always_inline)) { return load(a, 0.0f) * load(b, 0.0f); });
  });
}

template <typename T>
void ScaleRow(const float* row, float factor, T* out, int64_t count) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) out[i] = FromF32<T>(row[i] * factor);
  });
}

}  // namespace

void SoftmaxDown(const AttentionShape& shape, int64_t begin, const float* products, float sink,
                 void* weights, float* maxima, float* sums) {
  WithScoreType(shape, [&](auto zero) {
    auto* const typed = static_cast<decltype(zero)*>(weights);
    ForColumns(shape, begin, [&](int64_t at, int64_t first, Column column) {
      column.sink = sink;
      SoftmaxColumn(column, products + at, typed + at, maxima + first, sums + first);
    });
  });
}

void SoftmaxGradDown(const AttentionShape& shape, int64_t begin, const QueryLanes& queries,
                     const float* products, const float* dweights, void* weights, void* dproducts) {
  WithScoreType(shape, [&](auto zero) {
    using T = decltype(zero);
    ForColumns(shape, begin, [&](int64_t at, int64_t first, const Column& column) {
      SoftmaxGradColumn(column, {queries.log_sum_exp + first, queries.dot + first}, products + at,
                        dweights + at, static_cast<T*>(weights) + at,
                        static_cast<T*>(dproducts) + at);
    });
  });
}

void DotRows(const AttentionShape& shape, const HeadInput& a, const HeadInput& b, int64_t begin,
             float* dots) {
  WithFloatType(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < shape.num_queries(begin); ++i) {
      dots[i] = Dot(static_cast<const T*>(a.At(begin + i)), static_cast<const T*>(b.At(begin + i)),
                    shape.head_size);
    }
  });
}

void WriteRows(const AttentionShape& shape, const HeadSums& sums, const float* divisors,
               int64_t begin, const HeadOutput& head) {
  if (shape.dtype == DType::kF32 && divisors == nullptr) return;  // they are in place
  WithFloatType(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    const int64_t positions = std::min(shape.block, head.positions - begin);
    for (int64_t i = 0; i < positions; ++i) {
      const float factor = divisors == nullptr ? 1.0f : 1.0f / divisors[i];
      ScaleRow(sums.rows + i * sums.stride, factor, static_cast<T*>(head.At(begin + i)),
               shape.head_size);
    }
  });
}

}  // namespace zg
