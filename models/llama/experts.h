// The mixture of experts of Mixtral (Jiang et al., arXiv 2401.04088) and Qwen3-MoE (arXiv 2505.09388):
// each token goes through the SwiGLUs of the experts that a router finds likeliest, however many tokens
// choose the same one. Parameters have the names and layouts of transformers' models in memory. Shapes:
// B batch, T time, C channels, H hidden, E experts, K experts of a token.
#pragma once

#include <string>

#include "framework/nn/nn.h"

namespace zg::models {

struct ExpertsConfig {
  int64_t experts = 0;  // 0: no mixture, but one SwiGLU
  int64_t per_token = 2;
  // The shares of a token's experts are divided by their sum.
  bool shares_add_to_one = true;
};

// x (B, T, C), ids (B, T, K) -> (B, T, K, C)
struct Experts : nn::Module {
  nn::Parameter gate_up_proj;  // (E, 2H, C)
  nn::Parameter down_proj;     // (E, C, H)

  Experts(const nn::Module* parent, const std::string& name, int64_t experts, int64_t channels,
          int64_t hidden, const Initializer& weight)
      : Module(parent, name),
        gate_up_proj(this, "gate_up_proj", {experts, 2 * hidden, channels}, weight),
        down_proj(this, "down_proj", {experts, channels, hidden}, weight) {}

  Var operator()(Var x, Var ids) {
    const Scope scope(*this);
    const Var both = grouped_matmul(unsqueeze(x, -2), gate_up_proj, ids, /*transposed=*/true);
    const std::vector<Var> gate_and_up = chunk(both, 2, -1);
    return grouped_matmul(silu(gate_and_up[0]) * gate_and_up[1], down_proj, ids,
                          /*transposed=*/true);
  }
};

struct MixtureOfExperts : nn::Module {
  ExpertsConfig config;
  nn::Linear gate;
  Experts experts;

  MixtureOfExperts(const nn::Module* parent, const std::string& name, const ExpertsConfig& config,
                   int64_t channels, int64_t hidden, const Initializer& weight)
      : Module(parent, name),
        config(config),
        gate(this, "gate", channels, config.experts, {false, weight}),
        experts(this, "experts", config.experts, channels, hidden, weight) {}

  Var forward(Var x) override {
    probabilities_ = softmax(gate(x));
    const TopK best = top_k(probabilities_, config.per_token);
    ids_ = best.indices;
    Var shares = best.values;
    if (config.shares_add_to_one) shares = shares / sum(shares, {-1}, /*keep_dims=*/true);
    // As a product, whose result has 16 bits in mixed precision, as a SwiGLU's.
    return einsum("btk,btkc->btc", shares, experts(x, ids_));
  }

  // 1 if the tokens of the last call chose all experts equally often, more if some experts are both
  // likelier and chosen more often: E times the sum over experts of their share of the choices times
  // their mean probability (Fedus et al., arXiv 2101.03961, equation 4).
  Var balance_loss() const {
    const Var chosen = mean(one_hot(ids_, config.experts), {0, 1, 2});
    return sum(chosen * mean(probabilities_, {0, 1})) * static_cast<double>(config.experts);
  }

 private:
  Var probabilities_;  // (B, T, E)
  Var ids_;            // (B, T, K)
};

}  // namespace zg::models
