#include "framework/kernels/cpu/attention_head.h"

#include "framework/kernels/cpu/attention_rows.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {
namespace {

// The logarithm of the sum before the maximum was taken out.
void LogSumExp(const float* maxima, const float* sums, int64_t count, float* out) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      const float log_sum_exp = maxima[i] + Log(sums[i]);
      out[i] = maxima[i] == kNoKeysLogSumExp ? kNoKeysLogSumExp : log_sum_exp;
    }
  });
}

}  // namespace

void PackKeys(const AttentionShape& shape, const HeadInput& k, const HeadInput& v,
              const ForwardScratch& scratch) {
  for (int64_t i = 0; i < shape.num_key_blocks(); ++i) {
    PackRows(shape, k, i * shape.block, scratch.keys + i * shape.rows_size());
    PackTerms(shape, v, i * shape.block, scratch.values + i * shape.terms_size());
  }
}

void RunHead(const AttentionShape& shape, const HeadInput& q, const HeadOptions& options,
             const ForwardScratch& scratch, const HeadOutput& out, float* log_sum_exp) {
  const bool is_plain = shape.is_plain();
  for (int64_t begin = 0; begin < shape.queries; begin += shape.block) {
    const int64_t queries = shape.num_queries(begin);
    PackColumns(shape, q, begin, scratch.queries);
    MultiplyKeys(shape, begin, scratch.keys, scratch.queries, scratch.scores);
    if (!is_plain) FindScores(shape, options, begin, scratch.scores, nullptr);
    SoftmaxDown(shape, begin, scratch.scores, options.sink, scratch.weights, scratch.maxima,
                scratch.weight_sums);
    if (!is_plain) CloseRowsWithoutKeys(shape, scratch.maxima, scratch.weight_sums);
    if (log_sum_exp != nullptr) {
      LogSumExp(scratch.maxima, scratch.weight_sums, queries, log_sum_exp + begin);
    }
    if (shape.dropout > 0.0) {
      DropScores(shape, options, begin, shape.dtype, scratch.weights,
                 reinterpret_cast<uint32_t*>(scratch.bits));
    }
    const ScoreOperand weights(shape, begin, scratch.weights, scratch.packed_weights);
    const HeadSums sums(shape, out, begin, scratch.sums);
    const int64_t first = shape.first_key(begin);
    for (int64_t key = first; key < shape.end_key(begin); key += shape.block) {
      const float* const values = scratch.values + key / shape.block * shape.terms_size();
      weights.SumOverKeys(key, values, key > first, sums);
    }
    WriteRows(shape, sums, scratch.weight_sums, begin, out);
  }
}

}  // namespace zg
