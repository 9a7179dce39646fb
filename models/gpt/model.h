// GPT-2 (Radford et al. 2019): a decoder-only transformer with layer norms before the sublayers,
// learned positions, GELU in its tanh form, and the token embedding as output matrix. Trained with
// cross_entropy(model(tokens), next_tokens). Shapes: B batch, T = config.context, C channels, V
// vocabulary.
#pragma once

#include <cmath>

#include "framework/nn/nn.h"

namespace zg::models {

// The defaults are a model of 10.8 million parameters for single bytes.
struct GptConfig {
  int64_t layers = 6;
  int64_t heads = 6;
  int64_t channels = 384;
  int64_t context = 256;
  int64_t vocabulary = 256;
  double dropout = 0.0;             // on the embeddings and on each sublayer's output
  int64_t vocabulary_multiple = 1;  // of the logits, with columns of -infinity after the vocabulary
};

// Weights are normal(0.02), biases zero. The layers that write to the residual stream, two per
// block, start smaller so that its variance does not grow with the depth.
inline constexpr double kGptStd = 0.02;

inline nn::LinearOptions GptLinear(double std = kGptStd) {
  return {true, Initializer::Normal(std), Initializer::Zeros()};
}

inline nn::LinearOptions GptResidualLinear(const GptConfig& config) {
  return GptLinear(kGptStd / std::sqrt(2.0 * static_cast<double>(config.layers)));
}

struct GptMlp : nn::Module {
  nn::Linear expand;
  nn::Linear contract;

  GptMlp(const nn::Module* parent, const std::string& name, const GptConfig& config)
      : Module(parent, name),
        expand(this, "expand", config.channels, 4 * config.channels, GptLinear()),
        contract(this, "contract", 4 * config.channels, config.channels,
                 GptResidualLinear(config)) {}

  Var forward(Var x) override { return contract(gelu(expand(x))); }
};

struct GptBlock : nn::Module {
  nn::LayerNorm norm1;
  nn::CausalSelfAttention attention;
  nn::Dropout attention_dropout;
  nn::LayerNorm norm2;
  GptMlp mlp;
  nn::Dropout mlp_dropout;

  GptBlock(const nn::Module* parent, const std::string& name, const GptConfig& config)
      : Module(parent, name),
        norm1(this, "norm1", config.channels),
        attention(this, "attention", config.channels, config.heads,
                  {GptLinear(), GptResidualLinear(config)}),
        attention_dropout(this, "attention_dropout", config.dropout),
        norm2(this, "norm2", config.channels),
        mlp(this, "mlp", config),
        mlp_dropout(this, "mlp_dropout", config.dropout) {}

  Var forward(Var x) override {
    x = x + attention_dropout(attention(norm1(x)));
    return x + mlp_dropout(mlp(norm2(x)));
  }
};

struct Gpt : nn::Module {
  nn::Embedding token_embedding;     // (V, C)
  nn::Embedding position_embedding;  // (T, C)
  nn::Dropout embedding_dropout;
  nn::ModuleList<GptBlock> blocks;
  nn::LayerNorm final_norm;
  int64_t vocabulary_multiple;

  explicit Gpt(const GptConfig& config = {})
      : token_embedding(this, "token_embedding", config.vocabulary, config.channels, kGptStd),
        position_embedding(this, "position_embedding", config.context, config.channels, kGptStd),
        embedding_dropout(this, "embedding_dropout", config.dropout),
        blocks(this, "blocks", config.layers, config),
        final_norm(this, "final_norm", config.channels),
        vocabulary_multiple(config.vocabulary_multiple) {}

  // tokens (B, S) i64, S up to the context -> logits (B, S, V), or more columns with a multiple.
  Var forward(Var tokens) override {
    const int64_t context = position_embedding.weight.shape().dim(0);
    if (tokens.dim(-1) > context) {
      return fail(InvalidArgument("got tokens i64{}, expected (B, T) with T up to the context {}",
                                  tokens.shape().ToString(), context));
    }
    Var x = token_embedding(tokens);
    x = embedding_dropout(add(x, at_positions(position_embedding.weight, tokens.dim(-1))));
    for (GptBlock& block : blocks) x = block(x);
    x = final_norm(x);
    return padded_logits(x, token_embedding.weight, vocabulary_multiple);
  }
};

}  // namespace zg::models
