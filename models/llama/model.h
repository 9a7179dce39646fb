// Llama (Touvron et al., arXiv 2302.13971; Llama 3: arXiv 2407.21783) and its kin: a decoder-only
// transformer with root mean square norms before the sublayers, rotary positions, grouped-query
// attention and SwiGLU. Mistral (arXiv 2310.06825) adds a window, Qwen2 (arXiv 2407.10671) biases of q,
// k and v, Qwen3 (arXiv 2505.09388) norms of q's and k's heads; Mixtral and Qwen3-MoE have mixtures of
// experts (experts.h). Parameters have the names and layouts of transformers' models. Trained with
// cross_entropy(model(tokens), next_tokens). Shapes: B batch, T time, C channels, V vocabulary.
#pragma once

#include <optional>

#include "framework/nn/nn.h"
#include "models/llama/experts.h"

namespace zg::models {

// The defaults are a model of 9.6 million parameters for single bytes.
struct LlamaConfig {
  int64_t layers = 6;
  int64_t heads = 6;
  int64_t key_heads = 2;
  int64_t channels = 384;
  int64_t hidden = 1024;
  int64_t context = 256;
  int64_t vocabulary = 256;
  double epsilon = 1e-5;
  RotaryOptions rotary = {};
  bool qkv_bias = false;
  bool tied = false;  // the embedding is also the output matrix
  ExpertsConfig mixture = {};
  int64_t channels_per_head = 0;  // 0: channels / heads
  bool has_head_norms = false;    // of each head of q and of k
  int64_t window = 0;             // tokens that a token sees, itself included; 0: all before it

  int64_t head_size() const { return channels_per_head > 0 ? channels_per_head : channels / heads; }
};

inline constexpr double kLlamaStd = 0.02;

inline nn::LinearOptions LlamaLinear(bool has_bias = false) {
  return {has_bias, Initializer::Normal(kLlamaStd), Initializer::Zeros()};
}

struct LlamaAttention : nn::Module {
  LlamaConfig config;
  nn::Linear q_proj;
  nn::Linear k_proj;
  nn::Linear v_proj;
  nn::Linear o_proj;
  std::optional<nn::RMSNorm> q_norm;
  std::optional<nn::RMSNorm> k_norm;

  LlamaAttention(const nn::Module* parent, const std::string& name, const LlamaConfig& config)
      : Module(parent, name),
        config(config),
        q_proj(this, "q_proj", config.channels, config.heads * config.head_size(),
               LlamaLinear(config.qkv_bias)),
        k_proj(this, "k_proj", config.channels, config.key_heads * config.head_size(),
               LlamaLinear(config.qkv_bias)),
        v_proj(this, "v_proj", config.channels, config.key_heads * config.head_size(),
               LlamaLinear(config.qkv_bias)),
        o_proj(this, "o_proj", config.heads * config.head_size(), config.channels, LlamaLinear()) {
    if (!config.has_head_norms) return;
    q_norm.emplace(this, "q_norm", config.head_size(), config.epsilon);
    k_norm.emplace(this, "k_norm", config.head_size(), config.epsilon);
  }

  // x (B, T, any number of heads side by side), each of them normalised if there is a norm.
  Var heads_through(std::optional<nn::RMSNorm>& norm, Var x) {
    if (!norm.has_value()) return x;
    return flatten((*norm)(unflatten(x, -1, {-1, config.head_size()})), -2);
  }

  Var forward(Var x) override {
    const Var q = rotary(heads_through(q_norm, q_proj(x)), config.head_size(), config.rotary);
    const Var k = rotary(heads_through(k_norm, k_proj(x)), config.head_size(), config.rotary);
    AttentionOptions options;
    options.heads = config.heads;
    options.key_heads = config.key_heads;
    options.causal = true;
    options.window = config.window;
    return o_proj(attention(q, k, v_proj(x), options));
  }
};

struct LlamaLayer : nn::Module {
  nn::RMSNorm input_layernorm;
  LlamaAttention self_attn;
  nn::RMSNorm post_attention_layernorm;
  // One of them, named "mlp".
  std::optional<nn::SwiGLU> mlp;
  std::optional<MixtureOfExperts> mixture;

  LlamaLayer(const nn::Module* parent, const std::string& name, const LlamaConfig& config)
      : Module(parent, name),
        input_layernorm(this, "input_layernorm", config.channels, config.epsilon),
        self_attn(this, "self_attn", config),
        post_attention_layernorm(this, "post_attention_layernorm", config.channels,
                                 config.epsilon) {
    if (config.mixture.experts == 0) {
      mlp.emplace(this, "mlp", config.channels, config.hidden, LlamaLinear());
    } else {
      mixture.emplace(this, "mlp", config.mixture, config.channels, config.hidden,
                      Initializer::Normal(kLlamaStd));
    }
  }

  Var forward(Var x) override {
    x = x + self_attn(input_layernorm(x));
    const Var y = post_attention_layernorm(x);
    return x + (mlp.has_value() ? (*mlp)(y) : (*mixture)(y));
  }
};

struct LlamaDecoder : nn::Module {
  nn::Embedding embed_tokens;  // (V, C)
  nn::ModuleList<LlamaLayer> layers;
  nn::RMSNorm norm;

  LlamaDecoder(const nn::Module* parent, const std::string& name, const LlamaConfig& config)
      : Module(parent, name),
        embed_tokens(this, "embed_tokens", config.vocabulary, config.channels, kLlamaStd),
        layers(this, "layers", config.layers, config),
        norm(this, "norm", config.channels, config.epsilon) {}

  Var forward(Var tokens) override {
    Var x = embed_tokens(tokens);
    for (LlamaLayer& layer : layers) x = layer(x);
    return norm(x);
  }
};

struct Llama : nn::Module {
  LlamaDecoder model;
  std::optional<nn::Linear> lm_head;

  explicit Llama(const LlamaConfig& config = {}) : model(this, "model", config) {
    if (!config.tied) {
      lm_head.emplace(this, "lm_head", config.channels, config.vocabulary, LlamaLinear());
    }
  }

  // tokens (B, T) i64 -> logits (B, T, V), for any T.
  Var forward(Var tokens) override {
    const Var x = model(tokens);
    return lm_head.has_value() ? (*lm_head)(x) : linear(x, model.embed_tokens.weight);
  }

  // The mean over the layers' mixtures in the last call, 0 if there are none. To be added to the loss,
  // so that no expert is forgotten.
  Var balance_loss() {
    Var total = zeros({});
    for (LlamaLayer& layer : model.layers) {
      if (layer.mixture.has_value()) total = total + layer.mixture->balance_loss();
    }
    return total * (1.0 / static_cast<double>(model.layers.size()));
  }
};

}  // namespace zg::models
