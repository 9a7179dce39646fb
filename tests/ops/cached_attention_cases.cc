#include "tests/ops/cached_attention_cases.h"

#include <algorithm>
#include <cmath>

namespace zg::testing {
namespace {

// One query of one head at a time.
ReferenceOutputs CachedAttention(const ReferenceCall& call) {
  const ReferenceTensor &q = call.inputs[0], &keys = call.inputs[1], &values = call.inputs[2];
  const int64_t heads = call.attributes.Int("heads");
  const int64_t key_heads = call.attributes.Int("key_heads");
  const int64_t window = call.attributes.Int("window");
  const int64_t size = Columns(q) / heads;
  const double scale = call.attributes.Float("scale") != 0.0
                           ? call.attributes.Float("scale")
                           : 1.0 / std::sqrt(static_cast<double>(size));
  std::vector<double> out(q.values.size());
  const double cap = call.attributes.Float("soft_cap");
  const bool has_sinks = call.attributes.Bool("has_sinks");
  const bool is_biased = call.inputs.size() == (has_sinks ? 6 : 5);
  const ReferenceTensor* const bias = is_biased ? &call.inputs[3] : nullptr;
  const auto bias_of = [&](int64_t text, int64_t head, int64_t query, int64_t key) {
    if (bias == nullptr) return 0.0;
    const auto at = [&](int dim, int64_t i) { return bias->shape.dim(dim) == 1 ? 0 : i; };
    const int64_t matrix = at(0, text) * bias->shape.dim(1) + at(1, head);
    return bias->values[(matrix * bias->shape.dim(2) + query) * bias->shape.dim(3) + key];
  };
  for (int64_t row = 0; row < RowsOf(q); ++row) {
    const int64_t b = row / q.shape.dim(1);
    const int64_t position = StartOf(call.inputs.back(), b) + row % q.shape.dim(1);
    const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
    for (int64_t h = 0; h < heads; ++h) {
      const double* const query = q.values.data() + row * Columns(q) + h * size;
      const auto key_at = [&](int64_t key) {
        return (b * keys.shape.dim(1) + key) * Columns(keys) + h / (heads / key_heads) * size;
      };
      std::vector<double> weights;
      double sum = has_sinks ? std::exp(call.inputs[call.inputs.size() - 2].values[h]) : 0.0;
      for (int64_t key = first; key <= position; ++key) {
        double score = 0.0;
        for (int64_t c = 0; c < size; ++c) score += query[c] * keys.values[key_at(key) + c];
        score *= scale;
        if (cap > 0.0) score = cap * std::tanh(score / cap);
        weights.push_back(std::exp(score + bias_of(b, h, row % q.shape.dim(1), key)));
        sum += weights.back();
      }
      for (int64_t key = first; key <= position; ++key) {
        for (int64_t c = 0; c < size; ++c) {
          out[row * Columns(q) + h * size + c] +=
              weights[key - first] / sum * values.values[key_at(key) + c];
        }
      }
    }
  }
  return {out};
}

ir::Attributes Heads(int64_t heads, int64_t key_heads) {
  return {{"heads", heads}, {"key_heads", key_heads}};
}

ir::Attributes CappedWithSinks(int64_t heads, int64_t key_heads) {
  ir::Attributes attributes = Heads(heads, key_heads);
  attributes.Set("soft_cap", 1.5);
  attributes.Set("has_sinks", true);
  return attributes;
}

OpCase AttentionCase(std::string label, std::vector<InputSpec> inputs, ir::Attributes attributes) {
  return {.op = "cached_attention",
          .label = std::move(label),
          .inputs = std::move(inputs),
          .attributes = std::move(attributes),
          .reference = CachedAttention,
          .rounds_terms = true};
}

}  // namespace

FamilyCases CachedAttentionCases() {
  FamilyCases family;
  ir::Attributes window = Heads(4, 2);
  window.Set("window", int64_t{4});
  window.Set("scale", 0.7);
  family.cases = {
      AttentionCase("one token", {F32({2, 1, 8}), F32({2, 9, 8}), F32({2, 9, 8}), I64({2}, 9)},
                    Heads(2, 2)),
      AttentionCase("chunk", {F32({2, 5, 12}), F32({2, 9, 12}), F32({2, 9, 12}), I64({1}, 5)},
                    Heads(3, 3)),
      AttentionCase("groups", {F32({1, 3, 24}), F32({1, 40, 12}), F32({1, 40, 12}), I64({1}, 38)},
                    Heads(4, 2)),
      AttentionCase("window", {F32({2, 2, 24}), F32({2, 11, 12}), F32({2, 11, 12}), I64({2}, 10)},
                    window),
      AttentionCase("soft cap, sinks, one token",
                    {F32({2, 1, 24}), F32({2, 9, 12}), F32({2, 9, 12}), F32({4}), I64({2}, 9)},
                    CappedWithSinks(4, 2)),
      AttentionCase("soft cap, bias, sinks",
                    {F32({6, 2, 24}), F32({6, 7, 12}), F32({6, 7, 12}), F32({6, 1, 2, 7}),
                     F32({12}), I64({1}, 6)},
                    CappedWithSinks(12, 6)),
      AttentionCase("splits",
                    {F32({6, 2, 8}), F32({6, 7, 8}), F32({6, 7, 8}), F32({2}), I64({1}, 6)},
                    CappedWithSinks(2, 2)),
      AttentionCase("splits",
                    {F32({6, 2, 8}), F32({6, 7, 8}), F32({6, 7, 8}), F32({2}), I64({6}, 6)},
                    CappedWithSinks(2, 2)),
      AttentionCase("heads",
                    {F32({2, 2, 24}), F32({2, 7, 12}), F32({2, 7, 12}), F32({12}), I64({1}, 6)},
                    CappedWithSinks(12, 6)),
      AttentionCase(
          "bias of heads",
          {F32({2, 1, 24}), F32({2, 9, 12}), F32({2, 9, 12}), F32({1, 4, 1, 9}), I64({2}, 9)},
          Heads(4, 2)),
      AttentionCase(
          "bias of texts",
          {F32({2, 3, 24}), F32({2, 9, 12}), F32({2, 9, 12}), F32({2, 1, 3, 9}), I64({1}, 7)},
          Heads(4, 2)),
      AttentionCase(
          "splits",
          {F32({6, 2, 8}), F32({6, 7, 8}), F32({6, 7, 8}), F32({6, 2, 2, 7}), I64({6}, 6)},
          Heads(2, 2)),
      AttentionCase(
          "splits",
          {F32({6, 2, 8}), F32({6, 7, 8}), F32({6, 7, 8}), F32({1, 1, 2, 7}), I64({6}, 6)},
          Heads(2, 2)),
      AttentionCase(
          "heads",
          {F32({2, 2, 24}), F32({2, 7, 12}), F32({2, 7, 12}), F32({1, 12, 2, 7}), I64({2}, 6)},
          Heads(12, 6)),
      AttentionCase(
          "splits",
          {F32({6, 2, 8}), F32({6, 7, 8}), F32({6, 7, 8}), F32({6, 1, 2, 7}), I64({1}, 6)},
          Heads(2, 2)),
      AttentionCase(
          "heads",
          {F32({2, 2, 24}), F32({2, 7, 12}), F32({2, 7, 12}), F32({2, 1, 2, 7}), I64({1}, 6)},
          Heads(12, 6)),
      AttentionCase("splits", {F32({6, 2, 8}), F32({6, 7, 8}), F32({6, 7, 8}), I64({1}, 6)},
                    Heads(2, 2)),
      AttentionCase("splits", {F32({6, 2, 8}), F32({6, 7, 8}), F32({6, 7, 8}), I64({6}, 6)},
                    Heads(2, 2)),
      AttentionCase("heads", {F32({2, 2, 24}), F32({2, 7, 12}), F32({2, 7, 12}), I64({1}, 6)},
                    Heads(12, 6)),
      AttentionCase("heads", {F32({2, 2, 24}), F32({2, 7, 12}), F32({2, 7, 12}), I64({2}, 6)},
                    Heads(12, 6)),
  };
  family.rejections = {
      {"cached_attention",
       {F32({2, 5, 12}), F32({2, 4, 12}), F32({2, 4, 12}), I64({1}, 1)},
       Heads(3, 3),
       "cached_attention: q is not (B, S, H D), or keys and values are not alike (B, T, K D), T >= "
       "S: q f32[2,5,12], keys f32[2,4,12], values f32[2,4,12], start i64[1]"},
      {"cached_attention",
       {F32({2, 1, 12}), F32({2, 4, 12}), F32({2, 4, 12}), I64({1}, 1)},
       Heads(3, 2),
       "cached_attention: 3 heads and 2 key heads, expected a multiple of at least 1 each"},
      {"cached_attention",
       {F32({2, 1, 12}), F32({2, 4, 12}), F32({2, 4, 12}), I64({1}, 1)},
       Heads(4, 2),
       "cached_attention: the last dims do not divide into 4 heads of q and 2 of keys, of one size: "
       "q f32[2,1,12], keys f32[2,4,12], values f32[2,4,12], start i64[1]"},
      {"cached_attention",
       {F32({2, 1, 12}), F32({2, 4, 12}), F32({2, 4, 12}), I64({4}, 1)},
       Heads(3, 3),
       "cached_attention: start is neither i64 (1) nor (B): q f32[2,1,12], keys f32[2,4,12], values "
       "f32[2,4,12], start i64[4]"},
      {"cached_attention",
       {F32({2, 1, 12}), F32({2, 4, 12}), F32({2, 4, 12}), F32({1, 2, 1, 4}), I64({1}, 1)},
       Heads(3, 3),
       "cached_attention: bias is not (1 or B, 1 or H, S, T): q f32[2,1,12], keys f32[2,4,12], "
       "values f32[2,4,12], bias f32[1,2,1,4], start i64[1]"},
      {"cached_attention",
       {F32({2, 1, 12}), F32({2, 4, 12}), F32({2, 4, 12}), F32({2}), I64({1}, 1)},
       CappedWithSinks(3, 3),
       "cached_attention: sinks are not (H), one for each head of q: q f32[2,1,12], keys f32[2,4,12], "
       "values f32[2,4,12], sinks f32[2], start i64[1]"},
      {"cached_attention",
       {F32({2, 1, 12}), F32({2, 4, 12}), F32({2, 4, 12}), I64({1}, 1)},
       CappedWithSinks(3, 3),
       "cached_attention: got 4 inputs, expected q, keys, values, sinks, start"}};
  family.large = {
      Sized("cached_attention", "one token",
            {F32({2, 1, 6 * 64}), F32({2, 300, 2 * 64}), F32({2, 300, 2 * 64}), I64({2}, 300)},
            Heads(6, 2)),
      Sized("cached_attention", "one token, biased",
            {F32({2, 1, 6 * 64}), F32({2, 300, 2 * 64}), F32({2, 300, 2 * 64}), F32({1, 6, 1, 300}),
             I64({2}, 300)},
            Heads(6, 2)),
      Sized("cached_attention", "chunk",
            {F32({1, 70, 3 * 48}), F32({1, 200, 3 * 48}), F32({1, 200, 3 * 48}), I64({1}, 131)},
            Heads(3, 3)),
      Sized("cached_attention", "wide heads",
            {F32({1, 3, 2 * 200}), F32({1, 90, 2 * 200}), F32({1, 90, 2 * 200}), I64({1}, 88)},
            Heads(2, 2))};
  const Shape cache = {1, 1024, 768};
  family.bench = {
      Sized("cached_attention", "position 15",
            {F32({1, 1, 768}), F32({1, 16, 768}), F32({1, 16, 768}), {{DType::kI64, {1}}, 15, 16}},
            Heads(12, 12)),
      Sized("cached_attention", "position 1023",
            {F32({1, 1, 768}), F32(cache), F32(cache), {{DType::kI64, {1}}, 1023, 1024}},
            Heads(12, 12))};
  return family;
}

}  // namespace zg::testing
