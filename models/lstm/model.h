// An LSTM language model: each token's embedding goes through the layers, the last of which gives
// the logits of the next token (PyTorch's example word_language_model). Trained with
// cross_entropy(model(tokens), next_tokens). Shapes: B batch, T time, V vocabulary, H hidden.
#pragma once

#include "framework/nn/nn.h"

namespace zg::models {

// The defaults are a model of 1.0 million parameters for single bytes.
struct LstmConfig {
  int64_t vocabulary = 256;
  int64_t channels = 64;  // of the embedding
  int64_t hidden = 256;
  int64_t layers = 2;
};

struct LstmLanguage : nn::Module {
  nn::Embedding embedding;  // (V, channels)
  nn::LSTM lstm;
  nn::Linear output;

  explicit LstmLanguage(const LstmConfig& config = {})
      : embedding(this, "embedding", config.vocabulary, config.channels),
        lstm(this, "lstm", config.channels, config.hidden, config.layers),
        output(this, "output", config.hidden, config.vocabulary) {}

  // tokens (B, T) i64 -> logits (B, T, V), for any T.
  Var forward(Var tokens) override { return output(lstm(embedding(tokens))); }
};

}  // namespace zg::models
