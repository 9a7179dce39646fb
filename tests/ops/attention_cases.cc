#include <algorithm>
#include <cmath>

#include "tests/ops/attention_option_cases.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// The layout of qkv (B, T, 3C) and out (B, T, C).
struct Layout {
  Layout(const Shape& qkv, const ir::Attributes& attributes)
      : batch(qkv.dim(0)),
        time(qkv.dim(1)),
        channels(qkv.dim(2) / 3),
        heads(attributes.Int("heads")),
        head_size(channels / heads),
        causal(attributes.Bool("causal")),
        scale(1.0 / std::sqrt(static_cast<double>(head_size))) {}

  // Channel c of head h of q (part 0), k (1) or v (2), at position t of batch entry b.
  int64_t Qkv(int64_t b, int64_t t, int part, int64_t h, int64_t c) const {
    return ((b * time + t) * 3 + part) * channels + h * head_size + c;
  }
  int64_t Out(int64_t b, int64_t t, int64_t h, int64_t c) const {
    return (b * time + t) * channels + h * head_size + c;
  }
  int64_t Row(int64_t b, int64_t h, int64_t t) const { return (b * heads + h) * time + t; }
  int64_t NumKeys(int64_t query) const { return causal ? query + 1 : time; }

  double Score(const std::vector<double>& qkv, int64_t b, int64_t h, int64_t query,
               int64_t key) const {
    double dot = 0.0;
    for (int64_t c = 0; c < head_size; ++c) {
      dot += qkv[Qkv(b, query, 0, h, c)] * qkv[Qkv(b, key, 1, h, c)];
    }
    return dot * scale;
  }

  // Calls f(b, h, query) for every row of scores.
  template <typename F>
  void ForEachRow(const F& f) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t query = 0; query < time; ++query) f(b, h, query);
      }
    }
  }

  int64_t batch, time, channels, heads, head_size;
  bool causal;
  double scale;
};

ReferenceOutputs Attention(const ReferenceCall& call) {
  const std::vector<double>& qkv = call.inputs[0].values;
  const Layout at(call.inputs[0].shape, call.attributes);
  std::vector<double> out(qkv.size() / 3, 0.0);
  std::vector<double> log_sum_exp(at.batch * at.heads * at.time);
  at.ForEachRow([&](int64_t b, int64_t h, int64_t query) {
    double sum = 0.0;
    for (int64_t key = 0; key < at.NumKeys(query); ++key) {
      sum += std::exp(at.Score(qkv, b, h, query, key));
    }
    log_sum_exp[at.Row(b, h, query)] = std::log(sum);
    for (int64_t key = 0; key < at.NumKeys(query); ++key) {
      const double weight = std::exp(at.Score(qkv, b, h, query, key)) / sum;
      for (int64_t c = 0; c < at.head_size; ++c) {
        out[at.Out(b, query, h, c)] += weight * qkv[at.Qkv(b, key, 2, h, c)];
      }
    }
  });
  return {out, log_sum_exp};
}

ReferenceOutputs AttentionGrad(const ReferenceCall& call) {
  const std::vector<double>& dout = call.inputs[0].values;
  const std::vector<double>& qkv = call.inputs[1].values;
  const std::vector<double>& out = call.inputs[2].values;
  const std::vector<double>& log_sum_exp = call.inputs[3].values;
  const Layout at(call.inputs[1].shape, call.attributes);
  std::vector<double> dqkv(qkv.size(), 0.0);
  at.ForEachRow([&](int64_t b, int64_t h, int64_t query) {
    double row_dot = 0.0;  // dout . out
    for (int64_t c = 0; c < at.head_size; ++c) {
      row_dot += dout[at.Out(b, query, h, c)] * out[at.Out(b, query, h, c)];
    }
    for (int64_t key = 0; key < at.NumKeys(query); ++key) {
      const double weight =
          std::exp(at.Score(qkv, b, h, query, key) - log_sum_exp[at.Row(b, h, query)]);
      double dweight = 0.0;
      for (int64_t c = 0; c < at.head_size; ++c) {
        dweight += dout[at.Out(b, query, h, c)] * qkv[at.Qkv(b, key, 2, h, c)];
      }
      const double dscore = weight * (dweight - row_dot) * at.scale;
      for (int64_t c = 0; c < at.head_size; ++c) {
        const int64_t q = at.Qkv(b, query, 0, h, c);
        const int64_t k = at.Qkv(b, key, 1, h, c);
        dqkv[q] += dscore * qkv[k];
        dqkv[k] += dscore * qkv[q];
        dqkv[at.Qkv(b, key, 2, h, c)] += weight * dout[at.Out(b, query, h, c)];
      }
    }
  });
  return {dqkv};
}

// Inputs 2 and 3 become the outputs of attention on input 1.
void TakeForward(ReferenceCall& call) {
  const ReferenceOutputs forward = Attention({{call.inputs[1]}, call.attributes, call.step});
  call.inputs[2].values = forward[0];
  call.inputs[3].values = forward[1];
}

struct Sizes {
  int64_t batch, time, heads, head_size;
};

void AddCases(std::string label, Sizes sizes, bool causal, std::vector<OpCase>* cases) {
  const Shape qkv = {sizes.batch, sizes.time, 3 * sizes.heads * sizes.head_size};
  const Shape out = {sizes.batch, sizes.time, sizes.heads * sizes.head_size};
  const Shape rows = {sizes.batch, sizes.heads, sizes.time};
  const ir::Attributes attributes = {{"heads", sizes.heads}, {"causal", causal}};
  const bool small = qkv.num_elements() < 1000;
  cases->push_back({.op = "attention",
                    .label = label,
                    .inputs = {F32(qkv, -2.0, 2.0)},
                    .attributes = attributes,
                    .reference = Attention,
                    .check_gradient = small,
                    .rounds_terms = true});
  cases->push_back({.op = "attention_grad",
                    .label = label,
                    .inputs = {F32(out), F32(qkv, -2.0, 2.0), F32(out), F32(rows)},
                    .attributes = attributes,
                    .reference = AttentionGrad,
                    .prepare = TakeForward,
                    .f32_inputs = {3},
                    .rounds_terms = true});
}

void AddLarge(Sizes sizes, bool causal, std::vector<OpCase>* large) {
  std::vector<OpCase> cases;
  AddCases(fmt::format("B{} T{} H{} D{} causal={}", sizes.batch, sizes.time, sizes.heads,
                       sizes.head_size, causal),
           sizes, causal, &cases);
  large->insert(large->end(), cases.begin(), cases.end());
}

}  // namespace

FamilyCases AttentionCases() {
  FamilyCases family = AttentionOptionCases();
  AddCases("causal", {2, 5, 3, 4}, true, &family.cases);
  AddCases("all keys", {2, 5, 3, 4}, false, &family.cases);
  AddCases("one position", {3, 1, 1, 3}, true, &family.cases);
  AddCases("long", {1, 67, 2, 17}, true, &family.cases);
  AddCases("long, all keys", {1, 67, 2, 17}, false, &family.cases);
  AddCases("splits", {6, 3, 2, 5}, true, &family.cases);
  const std::vector<Rejection> rejections = {
      {"attention",
       {F32({2, 5, 24})},
       {{"heads", int64_t{3}}},
       "attention: the last dim of qkv does not divide into 3 x 3 heads: qkv f32[2,5,24]"},
      {"attention",
       {F32({5, 24})},
       {{"heads", int64_t{2}}},
       "attention: qkv is not (B, T, 3C): qkv f32[5,24]"},
      {"attention_grad",
       {F32({2, 5, 24}), F32({2, 5, 24}), F32({2, 5, 8}), F32({2, 2, 5})},
       {{"heads", int64_t{2}}},
       "attention_grad: dout and out do not fit qkv: dout f32[2,5,24], qkv f32[2,5,24], "
       "out f32[2,5,8], log_sum_exp f32[2,2,5]"},
      {"attention_grad",
       {F32({2, 5, 8}), F32({2, 5, 24}), F32({2, 5, 8}), F32({2, 5, 2})},
       {{"heads", int64_t{2}}},
       "attention_grad: log_sum_exp is not one f32 per batch entry, head and position: "
       "dout f32[2,5,8], qkv f32[2,5,24], out f32[2,5,8], log_sum_exp f32[2,5,2]"}};
  family.rejections.insert(family.rejections.end(), rejections.begin(), rejections.end());
  for (const bool causal : {true, false}) {
    AddLarge({1, 70, 2, 64}, causal, &family.large);
    AddLarge({1, 130, 1, 64}, causal, &family.large);  // three tiles
    AddLarge({1, 70, 1, 128}, causal, &family.large);
    AddLarge({1, 77, 1, 80}, causal, &family.large);
    AddLarge({1, 33, 1, 200}, causal, &family.large);
    AddLarge({2, 65, 1, 16}, causal, &family.large);
  }
  AddLarge({7, 5, 19, 8}, true, &family.large);  // on a GPU, two groups of heads and one more head
  const ir::Attributes causal = {{"heads", int64_t{6}}, {"causal", true}};
  const InputSpec qkv = F32({8, 256, 3 * 384}), out = F32({8, 256, 384});
  family.bench.push_back(Sized("attention", "gpt", {qkv}, causal));
  family.bench.push_back(
      Sized("attention_grad", "gpt", {out, qkv, out, F32({8, 6, 256})}, causal, {3}));
  return family;
}

}  // namespace zg::testing
