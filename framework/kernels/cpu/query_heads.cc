#include "framework/kernels/cpu/query_heads.h"

#include <algorithm>
#include <limits>

#include "framework/kernels/cpu/attention_options.h"
#include "framework/kernels/cpu/attention_rows.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {
namespace {

// How products become scores.
struct RowOptions {
  float scale;
  float soft_cap;
  float sink;
};

// Turns products into weights e^(score - maximum), and returns their sum, from that of the sink on in the
// order of the keys; infinity if the bias hides all of them. `bias` may be null.
template <typename T>
ZG_INLINE float SoftmaxRowOf(const RowOptions& options, int64_t keys, const T* bias, float* row) {
  const float scale = options.scale, cap = options.soft_cap, sink = options.sink;
  ZG_INDEPENDENT
  for (int64_t key = 0; key < keys; ++key) row[key] *= scale;
  if (cap > 0.0f) {
    ZG_INDEPENDENT
    for (int64_t key = 0; key < keys; ++key) row[key] = CappedScore(row[key], cap);
  }
  if (bias != nullptr) {
    ZG_INDEPENDENT
    for (int64_t key = 0; key < keys; ++key) row[key] = BiasedScore(row[key], ToF32(bias[key]));
  }
  const float largest = MaximumOf(row, keys);
  const float maximum = sink > largest ? sink : largest;
  ZG_INDEPENDENT
  for (int64_t key = 0; key < keys; ++key) row[key] = Exp(row[key] - maximum);
  float sum = sink == kNoSink ? 0.0f : Exp(sink - maximum);
  for (int64_t key = 0; key < keys; ++key) sum += row[key];
  return maximum == kHiddenScore ? std::numeric_limits<float>::infinity() : sum;
}
float SoftmaxRow(const AttentionShape& shape, float sink, const void* bias, float* row) {
  return WithFloatType(shape.dtype, [&](auto zero) {
    const auto* const of_keys = static_cast<const decltype(zero)*>(bias);
    const RowOptions options = {shape.scale, shape.soft_cap, sink};
    const int64_t keys = shape.keys;
    return Multiversion([=]() ZG_VERSION { return SoftmaxRowOf(options, keys, of_keys, row); });
  });
}

void PrefetchRows(const HeadInput& head, int64_t begin, int64_t count, int64_t bytes) {
  for (int64_t i = begin; i < std::min(begin + count, head.positions); ++i) {
    PrefetchDistantRow(static_cast<const char*>(head.At(i)), bytes);
  }
}

// Calls body(key, count) for every part of the keys.
template <typename Body>
void ForParts(int64_t keys, const Body& body) {
  for (int64_t key = 0; key < keys; key += kPartKeys) body(key, std::min(kPartKeys, keys - key));
}

}  // namespace

void RunQueryHeads(const AttentionShape& shape, const KernelArguments& arguments,
                   const QueryHeads& queries, const HeadInput& k, const HeadInput& v,
                   const QueryScratch& scratch) {
  const GemmMethod& method = *shape.method;
  const int64_t heads = shape.group();
  const int64_t size = shape.head_size;
  const int64_t element_bytes = SizeOf(shape.dtype);
  const int64_t stride = scratch.score_stride;

  method.pack_a({queries.q.data, size, true, heads, size}, scratch.queries);
  BlockProduct product;
  product.b = scratch.part;
  product.rows = heads;
  product.a = scratch.queries;
  product.c_stride = stride;
  product.depth = size;
  ForParts(shape.keys, [&](int64_t key, int64_t count) {
    method.pack_b({k.At(key), k.stride, true, count, size}, scratch.part);
    PrefetchRows(k, key + kPartKeys, kPartKeys, size * element_bytes);
    product.columns = count;
    product.c = scratch.scores + key;
    method.multiply(product);
  });

  PrefetchRows(v, 0, kPartKeys, size * element_bytes);
  auto* const weights = reinterpret_cast<char*>(scratch.weights);
  for (int64_t h = 0; h < heads; ++h) {
    float* const row = scratch.scores + h * stride;
    const auto* bias = static_cast<const char*>(queries.bias);
    if (bias != nullptr) bias += h * shape.bias_head_stride * element_bytes;
    const float sink = SinkOf(shape, arguments, queries.first + h);
    scratch.weight_sums[h] = SoftmaxRow(shape, sink, bias, row);
    if (shape.dtype == DType::kF32) continue;
    ConvertFloats(DType::kF32, row, shape.dtype, weights + h * stride * element_bytes, shape.keys);
  }

  HeadOutput rows = queries.out;  // of the heads, one behind the other
  rows.positions = heads;
  rows.stride = size;
  rows.row_bytes = size * element_bytes;
  HeadSums sums(shape, rows, 0, scratch.sums);
  product.a = scratch.packed_weights;
  product.c = sums.rows;
  product.c_stride = sums.stride;
  product.columns = size;
  ForParts(shape.keys, [&](int64_t key, int64_t count) {
    method.pack_a({weights + key * element_bytes, stride, true, heads, count},
                  scratch.packed_weights);
    method.pack_b({v.At(key), v.stride, false, size, count}, scratch.part);
    PrefetchRows(v, key + kPartKeys, kPartKeys, size * element_bytes);
    product.depth = count;
    product.continues = key > 0;
    method.multiply(product);
  });

  for (int64_t h = 0; h < heads; h += shape.block, sums.rows += shape.block * sums.stride) {
    WriteRows(shape, sums, scratch.weight_sums + h, h, rows);
  }
}

}  // namespace zg
