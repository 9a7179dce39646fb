// Llama (Touvron et al., arXiv 2302.13971; Llama 3: arXiv 2407.21783), Qwen2 (arXiv 2407.10671), which
// adds biases to q, k and v, and Mixtral (experts.h): a decoder-only transformer with root mean square
// norms before the sublayers, rotary positions, grouped-query attention and SwiGLU. Parameters have the
// names and layouts of transformers' LlamaForCausalLM and Qwen2ForCausalLM, so their files can be
// loaded. Trained with cross_entropy(model(tokens), next_tokens). Shapes: B batch, T time, C channels, V
// vocabulary.
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
};

inline constexpr double kLlamaStd = 0.02;

inline nn::LinearOptions LlamaLinear(bool has_bias = false) {
  return {has_bias, Initializer::Normal(kLlamaStd), Initializer::Zeros()};
}

struct LlamaAttention : nn::Module {
  LlamaConfig config;
  int64_t head_size;
  nn::Linear q_proj;
  nn::Linear k_proj;
  nn::Linear v_proj;
  nn::Linear o_proj;

  LlamaAttention(const nn::Module* parent, const std::string& name, const LlamaConfig& config)
      : Module(parent, name),
        config(config),
        head_size(config.channels / config.heads),
        q_proj(this, "q_proj", config.channels, config.channels, LlamaLinear(config.qkv_bias)),
        k_proj(this, "k_proj", config.channels, config.key_heads * head_size,
               LlamaLinear(config.qkv_bias)),
        v_proj(this, "v_proj", config.channels, config.key_heads * head_size,
               LlamaLinear(config.qkv_bias)),
        o_proj(this, "o_proj", config.channels, config.channels, LlamaLinear()) {}

  Var forward(Var x) override {
    const Var q = rotary(q_proj(x), head_size, config.rotary);
    const Var k = rotary(k_proj(x), head_size, config.rotary);
    AttentionOptions options;
    options.heads = config.heads;
    options.key_heads = config.key_heads;
    options.causal = true;
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
