#include "framework/ops/attention_rules.h"

#include <algorithm>

namespace zg::attention_rules {

int64_t NumPairs(const Sizes& sizes, bool causal, int64_t window) {
  if (window == 0 && !causal) return sizes.queries * sizes.keys;
  int64_t pairs = 0;
  for (int64_t query = 0; query < sizes.queries; ++query) {
    const int64_t position = query + sizes.keys - sizes.queries;
    int64_t end = causal ? position + 1 : sizes.keys;
    if (window > 0 && !causal) end = std::min(end, position + window);
    const int64_t begin = window > 0 ? std::max<int64_t>(position - window + 1, 0) : 0;
    pairs += std::max<int64_t>(end - begin, 0);
  }
  return pairs;
}

int64_t Flops(const Sizes& sizes, int64_t pairs, int64_t products, int64_t per_score) {
  return sizes.batch * pairs * (products * 2 * sizes.channels + per_score * sizes.heads);
}

Shape RowsOf(const Sizes& sizes) { return {sizes.batch, sizes.heads, sizes.queries}; }

void SetOwnHeads(const char* attribute, const ir::OpCall& logical, size_t input,
                 ir::OpCall* local) {
  const int64_t channels = logical.inputs[input].shape.dim(2);
  const int64_t own_channels = local->inputs[input].shape.dim(2);
  const int64_t heads = logical.attributes.Int(attribute);
  if (own_channels != channels) local->attributes.Set(attribute, heads * own_channels / channels);
}

}  // namespace zg::attention_rules
