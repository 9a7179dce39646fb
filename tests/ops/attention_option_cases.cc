#include "tests/ops/attention_option_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ops/attention_formula.h"

namespace zg::testing {
namespace {

ReferenceOutputs Forward(const ReferenceCall& call, int q) {
  const AttentionFormula at(call, q);
  const std::vector<double>& v = call.inputs[q + 2].values;
  std::vector<double> out(call.inputs[q].values.size(), 0.0);
  std::vector<double> log_sum_exp(at.batch * at.heads * at.queries);
  at.ForEachRow([&](int64_t b, int64_t h, int64_t i) {
    double sum = at.SinkWeight(h);
    for (int64_t j = 0; j < at.keys; ++j) {
      if (at.Sees(b, i, j)) sum += std::exp(at.Score(b, h, i, j));
    }
    log_sum_exp[at.Row(b, h, i)] = sum > 0.0 ? std::log(sum) : std::numeric_limits<float>::max();
    for (int64_t j = 0; j < at.keys; ++j) {
      if (!at.Sees(b, i, j)) continue;
      const double weight = std::exp(at.Score(b, h, i, j)) / sum * at.Keep(b, h, i, j);
      for (int64_t c = 0; c < at.size; ++c) out[at.Q(b, h, i, c)] += weight * v[at.K(b, h, j, c)];
    }
  });
  return {out, log_sum_exp};
}

ReferenceOutputs Gradients(const ReferenceCall& call) {
  const AttentionFormula at(call, 1);
  const std::vector<double>& dout = call.inputs[0].values;
  const std::vector<double>& q = call.inputs[1].values;
  const std::vector<double>& k = call.inputs[2].values;
  ReferenceOutputs gradients = {std::vector<double>(q.size()), std::vector<double>(k.size()),
                                std::vector<double>(k.size())};
  at.ForEachGradient([&](int64_t b, int64_t h, int64_t i, int64_t j, double weight, double dscore) {
    for (int64_t c = 0; c < at.size; ++c) {
      const int64_t q_at = at.Q(b, h, i, c);
      const int64_t k_at = at.K(b, h, j, c);
      gradients[0][q_at] += dscore * at.Slope(b, h, i, j) * k[k_at];
      gradients[1][k_at] += dscore * at.Slope(b, h, i, j) * q[q_at];
      gradients[2][k_at] += weight * at.Keep(b, h, i, j) * dout[q_at];
    }
  });
  return gradients;
}

ReferenceOutputs BiasGradient(const ReferenceCall& call) {
  const AttentionFormula at(call, 1);
  std::vector<double> dbias(at.NumBias());
  at.ForEachGradient([&](int64_t b, int64_t h, int64_t i, int64_t j, double, double dscore) {
    dbias[at.Bias(b, h, i, j)] += dscore;
  });
  return {dbias};
}

// Sets the last input to the indices of the parts of the heads, if the call has some.
void SetParts(ReferenceCall& call, int64_t first) {
  if (!call.attributes.Has("parts") || call.attributes.Int("parts") == 1) return;
  NumberParts(call, call.inputs.size() - 1, first);
}

// Inputs 4 and 5 become the outputs of the forward op.
void TakeForward(ReferenceCall& call) {
  const ReferenceOutputs forward = Forward(call, 1);
  call.inputs[4].values = forward[0];
  call.inputs[5].values = forward[1];
}

struct Sizes {
  int64_t batch, queries, keys, heads, key_heads, head_size;
};

struct Options {
  bool causal = false;
  int64_t window = 0;
  double scale = 0.0;
  int mask_dims = 0;  // 1: lengths; 2: keys
  Shape bias = {};    // no dims: none
  double soft_cap = 0.0;
  bool has_sinks = false;
  // The number of parts of the heads, and which of them the call has.
  int64_t parts = 1, own_parts = 1, first_part = 0;
};

// The cases of the three ops of a name.
void AddCases(const std::string& op, const std::string& label, const Sizes& s,
              const Options& options, std::vector<OpCase>* cases) {
  const InputSpec q = F32({s.batch, s.queries, s.heads * s.head_size}, -2.0, 2.0);
  const InputSpec k = F32({s.batch, s.keys, s.key_heads * s.head_size}, -2.0, 2.0);
  std::vector<InputSpec> extra;
  if (options.mask_dims == 1) extra.push_back(I64({s.batch}, s.keys + 1));
  if (options.mask_dims == 2) extra.push_back(I64({s.batch, s.keys}, 2));
  const bool biased = options.bias.num_dims() > 0;
  if (biased) extra.push_back(F32(options.bias));
  if (options.has_sinks) extra.push_back(F32({s.heads}, -1.0, 3.0));
  if (options.parts > 1) extra.push_back(I64({options.own_parts}, 1));
  ir::Attributes attributes = {
      {"heads", s.heads},         {"key_heads", s.key_heads},     {"causal", options.causal},
      {"window", options.window}, {"scale", options.scale},       {"masked", options.mask_dims > 0},
      {"biased", biased},         {"soft_cap", options.soft_cap}, {"has_sinks", options.has_sinks}};
  const bool drops = op == "dropout_attention";
  if (drops) {
    attributes.Set("probability", 0.25);
    attributes.Set("stream", int64_t{3});
    if (options.parts > 1) attributes.Set("parts", options.parts);
  }
  const auto set_parts = [first = options.first_part](ReferenceCall& call) {
    SetParts(call, first);
  };
  std::vector<InputSpec> forward = {q, k, k};
  forward.insert(forward.end(), extra.begin(), extra.end());
  std::vector<InputSpec> backward = {q, q, k, k, q, F32({s.batch, s.heads, s.queries})};
  backward.insert(backward.end(), extra.begin(), extra.end());
  cases->push_back({.op = op,
                    .label = label,
                    .inputs = forward,
                    .attributes = attributes,
                    .reference = [](const ReferenceCall& call) { return Forward(call, 0); },
                    .prepare = set_parts,
                    .check_gradient = s.queries * s.keys < 100 && options.parts == 1,
                    .parts_are_micro_batches = drops,
                    .rounds_terms = true});
  const OpCase gradient = {.op = op + "_grad",
                           .label = label,
                           .inputs = backward,
                           .attributes = attributes,
                           .reference = Gradients,
                           .prepare =
                               [set_parts](ReferenceCall& call) {
                                 set_parts(call);
                                 TakeForward(call);
                               },
                           .parts_are_micro_batches = drops,
                           .f32_inputs = {5},
                           .rounds_terms = true};
  cases->push_back(gradient);
  if (!biased) return;
  cases->push_back(gradient);
  cases->back().op = op + "_bias_grad";
  cases->back().reference = BiasGradient;
}

void AddRejections(std::vector<Rejection>* rejections) {
  const std::string op = "dot_product_attention";
  const ir::Attributes two = {{"heads", int64_t{2}}, {"key_heads", int64_t{1}}};
  const auto with = [&](const char* name, const ir::Attribute& value) {
    ir::Attributes attributes = two;
    attributes.Set(name, value);
    return attributes;
  };
  const InputSpec q = F32({2, 5, 8}), k = F32({2, 3, 4});
  *rejections = {
      {op,
       {q, k, F32({2, 4, 4})},
       two,
       "dot_product_attention: q is not (B, Tq, H D), or k and v are not alike (B, Tk, K D): q "
       "f32[2,5,8], k f32[2,3,4], v f32[2,4,4]"},
      {op,
       {q, k, k},
       with("key_heads", int64_t{3}),
       "dot_product_attention: 2 heads and 3 key heads, expected a multiple of at least 1 each"},
      {op,
       {q, F32({2, 3, 6}), F32({2, 3, 6})},
       two,
       "dot_product_attention: the last dims do not divide into 2 heads of q and 1 of k, of one "
       "size: q f32[2,5,8], k f32[2,3,6], v f32[2,3,6]"},
      {op,
       {q, F32({3, 3, 4}), F32({3, 3, 4})},
       two,
       "dot_product_attention: q and k differ in the batch: q f32[2,5,8], k f32[3,3,4], v "
       "f32[3,3,4]"},
      {op,
       {q, k, k},
       with("window", int64_t{-1}),
       "dot_product_attention: window is -1, expected at least 1, or 0 for none"},
      {op,
       {q, k, k},
       with("masked", true),
       "dot_product_attention: got 3 inputs, expected q, k, v, mask"},
      {op,
       {q, k, k, I64({2, 5}, 2)},
       with("masked", true),
       "dot_product_attention: mask is neither i64 (B), how many keys each sequence has, nor i64 "
       "(B, Tk), 0 where a key is hidden: q f32[2,5,8], k f32[2,3,4], v f32[2,3,4], mask "
       "i64[2,5]"},
      {op,
       {q, k, k, F32({1, 3, 5, 3})},
       with("biased", true),
       "dot_product_attention: bias is not (1 or B, 1 or H, Tq, Tk): q f32[2,5,8], k f32[2,3,4], v "
       "f32[2,3,4], bias f32[1,3,5,3]"},
  };
  rejections->push_back({op,
                         {q, k, k, F32({1})},
                         with("has_sinks", true),
                         "dot_product_attention: sinks are not (H), one for each head of q: q "
                         "f32[2,5,8], k f32[2,3,4], v f32[2,3,4], sinks f32[1]"});
  rejections->push_back(
      {op,
       {q, k, k},
       with("soft_cap", -1.0),
       "dot_product_attention: soft_cap is -1, expected a positive number, or 0 for "
       "none"});
  ir::Attributes drops = with("probability", 1.0);
  drops.Set("stream", int64_t{0});
  rejections->push_back({"dropout_attention",
                         {q, k, k},
                         drops,
                         "dropout_attention: probability is 1, expected 0 <= probability < 1"});
  drops.Set("probability", 0.5);
  for (const std::string name : {"dot_product_attention", "dropout_attention"}) {
    const bool is_random = name == "dropout_attention";
    rejections->push_back({name + "_grad",
                           {k, q, k, k, q, F32({2, 2, 5})},
                           is_random ? drops : two,
                           name +
                               "_grad: dout and out do not fit q: dout f32[2,3,4], q f32[2,5,8], "
                               "k f32[2,3,4], v f32[2,3,4], out f32[2,5,8], log_sum_exp "
                               "f32[2,2,5]"});
    rejections->push_back({name + "_bias_grad",
                           {q, q, k, k, q, F32({2, 2, 5})},
                           is_random ? drops : two,
                           name + "_bias_grad: there is no bias"});
  }
}

}  // namespace

FamilyCases AttentionOptionCases() {
  FamilyCases family;
  const auto add = [&](const char* label, const Sizes& sizes, const Options& options) {
    AddCases("dot_product_attention", label, sizes, options, &family.cases);
  };
  add("all keys", {2, 5, 7, 2, 2, 4}, {});
  add("grouped, causal", {2, 5, 5, 6, 2, 4}, {.causal = true});
  add("decoding", {2, 3, 7, 2, 1, 4}, {.causal = true});
  add("more queries than keys", {1, 6, 4, 2, 2, 3}, {.causal = true});
  add("window, causal", {1, 9, 9, 2, 1, 4}, {.causal = true, .window = 3});
  add("window", {1, 8, 9, 2, 1, 4}, {.window = 2});
  add("lengths", {3, 4, 5, 2, 1, 4}, {.mask_dims = 1});
  add("mask", {3, 4, 3, 2, 1, 4}, {.mask_dims = 2});
  add("bias", {2, 3, 5, 2, 1, 4}, {.scale = 0.3, .bias = {1, 2, 3, 5}});
  add("all options", {2, 5, 6, 4, 2, 3},
      {.causal = true, .window = 4, .mask_dims = 2, .bias = {2, 4, 5, 6}});
  add("soft cap", {2, 5, 5, 4, 2, 4}, {.causal = true, .soft_cap = 1.5});
  add("soft cap, bias", {2, 3, 5, 2, 1, 4}, {.bias = {1, 2, 3, 5}, .soft_cap = 0.7});
  add("sinks", {2, 5, 5, 4, 2, 4}, {.causal = true, .has_sinks = true});
  add("sinks, no keys", {1, 6, 4, 2, 2, 3}, {.causal = true, .has_sinks = true});
  add("splits", {6, 3, 2, 2, 1, 4}, {.soft_cap = 1.0, .has_sinks = true});
  add("heads", {1, 3, 2, 12, 6, 4}, {.soft_cap = 1.0, .has_sinks = true});
  add("splits, all options", {6, 3, 2, 2, 1, 4},
      {.causal = true,
       .window = 2,
       .mask_dims = 2,
       .bias = {6, 2, 3, 2},
       .soft_cap = 2.0,
       .has_sinks = true});
  add("heads, all options", {6, 3, 2, 12, 6, 4},
      {.causal = true,
       .window = 2,
       .mask_dims = 2,
       .bias = {1, 12, 3, 2},
       .soft_cap = 2.0,
       .has_sinks = true});
  add("splits", {6, 3, 2, 2, 1, 4}, {});
  add("splits", {6, 3, 2, 2, 1, 4}, {.mask_dims = 1});
  add("splits", {6, 3, 2, 2, 1, 4}, {.bias = {1, 1, 3, 2}});
  add("splits", {6, 3, 2, 2, 1, 4}, {.bias = {6, 1, 3, 2}});
  add("splits", {6, 3, 2, 2, 1, 4}, {.mask_dims = 1, .bias = {1, 2, 3, 2}});
  add("splits", {6, 3, 2, 2, 1, 4}, {.mask_dims = 2, .bias = {6, 2, 3, 2}});
  add("heads", {1, 3, 2, 12, 6, 4}, {});
  add("heads", {1, 3, 2, 12, 6, 4}, {.mask_dims = 1});
  add("heads", {1, 3, 2, 6, 6, 4}, {.bias = {1, 1, 3, 2}});
  add("heads", {1, 3, 2, 12, 6, 4}, {.bias = {1, 12, 3, 2}});
  add("heads", {1, 3, 2, 12, 6, 4}, {.mask_dims = 2, .bias = {1, 12, 3, 2}});
  add("long, grouped, causal", {1, 67, 131, 4, 2, 17}, {.causal = true});
  add("long, window", {1, 130, 140, 2, 1, 5}, {.causal = true, .window = 33});
  add("long, all options", {2, 67, 70, 2, 1, 17},
      {.causal = true, .window = 40, .mask_dims = 2, .bias = {1, 2, 67, 70}});
  add("long, soft cap, sinks", {1, 67, 131, 4, 2, 17},
      {.causal = true, .soft_cap = 1.5, .has_sinks = true});
  const auto drop = [&](const char* label, const Sizes& sizes, const Options& options) {
    AddCases("dropout_attention", label, sizes, options, &family.cases);
  };
  drop("causal", {2, 5, 5, 2, 1, 4}, {.causal = true});
  drop("all options", {2, 5, 6, 4, 2, 3},
       {.causal = true, .window = 4, .mask_dims = 2, .bias = {2, 4, 5, 6}});
  drop("soft cap, sinks", {2, 5, 5, 2, 1, 4}, {.causal = true, .soft_cap = 1.5, .has_sinks = true});
  drop("splits", {6, 3, 2, 2, 1, 4}, {});
  drop("splits", {6, 3, 2, 2, 1, 4}, {.mask_dims = 1, .bias = {1, 2, 3, 2}});
  drop("splits", {6, 3, 2, 2, 1, 4}, {.mask_dims = 2, .bias = {6, 2, 3, 2}});
  drop("long", {1, 67, 70, 2, 1, 17}, {.window = 30});
  drop("a part of the heads", {2, 3, 5, 4, 2, 4}, {.parts = 3, .own_parts = 1, .first_part = 2});
  drop("parts of the heads", {2, 3, 5, 8, 4, 4},
       {.causal = true, .bias = {2, 8, 3, 5}, .parts = 3, .own_parts = 2, .first_part = 1});
  const auto drop_in_parts = [&](Options options) {
    options.parts = options.own_parts = 6;
    drop("all parts of the heads", {6, 3, 2, 6, 6, 4}, options);
  };
  drop_in_parts({});
  drop_in_parts({.bias = {6, 6, 3, 2}});
  drop_in_parts({.mask_dims = 1, .bias = {1, 1, 3, 2}});
  drop_in_parts({.mask_dims = 2, .bias = {1, 6, 3, 2}});
  AddRejections(&family.rejections);

  const auto add_large = [&](const Sizes& s, bool causal) {
    const std::string label = fmt::format("B{} T{},{} H{},{} D{} causal={}", s.batch, s.queries,
                                          s.keys, s.heads, s.key_heads, s.head_size, causal);
    AddCases("dot_product_attention", label, s, {.causal = causal}, &family.large);
  };
  add_large({1, 130, 130, 2, 1, 64}, true);
  add_large({1, 40, 130, 2, 1, 128}, true);
  add_large({1, 130, 77, 2, 2, 16}, false);
  add_large({5, 3, 9, 26, 13, 8}, true);  // on a GPU, two groups of heads
  AddCases("dot_product_attention", "bias", {2, 70, 130, 2, 1, 32},
           {.causal = true, .bias = {1, 2, 70, 130}}, &family.large);
  const ir::Attributes causal = {
      {"heads", int64_t{6}}, {"key_heads", int64_t{2}}, {"causal", true}};
  const InputSpec q = F32({8, 256, 384}), k = F32({8, 256, 128});
  family.bench = {
      Sized("dot_product_attention", "llama", {q, k, k}, causal),
      Sized("dot_product_attention_grad", "llama", {q, q, k, k, q, F32({8, 6, 256})}, causal, {5})};
  const ir::Attributes whole = {
      {"heads", int64_t{4}}, {"key_heads", int64_t{4}}, {"causal", false}};
  const auto add_whole_bench = [&](const std::string& label, const Shape& shape) {
    const InputSpec rows = F32(shape);
    const InputSpec sums = F32({shape.dim(0), 4, shape.dim(1)});
    family.bench.push_back(Sized("dot_product_attention", label, {rows, rows, rows}, whole));
    family.bench.push_back(Sized("dot_product_attention_grad", label,
                                 {rows, rows, rows, rows, rows, sums}, whole, {5}));
  };
  add_whole_bench("vit", {64, 50, 128});
  add_whole_bench("bert", {32, 128, 256});
  return family;
}

}  // namespace zg::testing
