// BERT (Devlin et al., arXiv 1810.04805) as a masked language model: an encoder with a norm after
// each residual addition, learned positions, token types, and the token embedding as output matrix.
// Parameters have the names and layouts of transformers' BertForMaskedLM, so its files can be
// loaded; like it, this has no pooler. Trained with
//   cross_entropy(model(tokens), labels, ClassLossOptions())  // label -100: the token is not masked
// Shapes: B batch, T time, C channels, V vocabulary.
#pragma once

#include "framework/nn/nn.h"

namespace zg::models {

// The defaults are a model of 3.3 million parameters for single bytes and a mask.
struct BertConfig {
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t channels = 256;
  int64_t hidden = 1024;
  int64_t context = 128;  // the longest sequence
  int64_t vocabulary = 257;
  int64_t token_types = 2;
  double epsilon = 1e-12;
  double dropout = 0.0;            // on the embeddings and on each sublayer's output
  double attention_dropout = 0.0;  // on attention weights
};

inline constexpr double kBertStd = 0.02;

inline nn::LinearOptions BertLinear() {
  return {true, Initializer::Normal(kBertStd), Initializer::Zeros()};
}

struct BertEmbeddings : nn::Module {
  nn::Embedding word_embeddings;        // (V, C)
  nn::Embedding position_embeddings;    // (context, C)
  nn::Embedding token_type_embeddings;  // (types, C)
  nn::LayerNorm norm;
  double dropout;

  BertEmbeddings(const nn::Module* parent, const std::string& name, const BertConfig& config)
      : Module(parent, name),
        word_embeddings(this, "word_embeddings", config.vocabulary, config.channels, kBertStd),
        position_embeddings(this, "position_embeddings", config.context, config.channels, kBertStd),
        token_type_embeddings(this, "token_type_embeddings", config.token_types, config.channels,
                              kBertStd),
        norm(this, "LayerNorm", config.channels, config.epsilon),
        dropout(config.dropout) {}

  Var operator()(Var tokens, Var token_types) {
    const Scope scope(*this);
    const int64_t context = position_embeddings.weight.shape().dim(0);
    if (tokens.shape().num_dims() != 2 || tokens.dim(1) > context) {
      return fail(InvalidArgument("got tokens i64{}, expected (B, T) with T up to the context {}",
                                  tokens.shape().ToString(), context));
    }
    const Var words = word_embeddings(tokens);
    const Var types = token_types.empty() ? select(token_type_embeddings.weight, 0, 0)
                                          : token_type_embeddings(token_types);
    const Var positions = slice(position_embeddings.weight, 0, 0, tokens.dim(1));
    return zg::dropout(norm(words + types + positions), dropout);
  }
};

struct BertSelfAttention : nn::Module {
  AttentionOptions options;
  nn::Linear query;
  nn::Linear key;
  nn::Linear value;

  BertSelfAttention(const nn::Module* parent, const std::string& name, const BertConfig& config)
      : Module(parent, name),
        query(this, "query", config.channels, config.channels, BertLinear()),
        key(this, "key", config.channels, config.channels, BertLinear()),
        value(this, "value", config.channels, config.channels, BertLinear()) {
    options.heads = config.heads;
    options.dropout = config.attention_dropout;
  }

  Var operator()(Var x, Var mask) {
    const Scope scope(*this);
    const Var q = query(x);
    const Var k = key(x);
    AttentionOptions masked = options;
    masked.mask = mask;
    return zg::attention(q, k, value(x), masked);
  }
};

// The end of a sublayer: a linear layer, the residual addition, then the norm.
struct BertOutput : nn::Module {
  nn::Linear dense;
  nn::LayerNorm norm;
  double dropout;

  BertOutput(const nn::Module* parent, const std::string& name, int64_t in,
             const BertConfig& config)
      : Module(parent, name),
        dense(this, "dense", in, config.channels, BertLinear()),
        norm(this, "LayerNorm", config.channels, config.epsilon),
        dropout(config.dropout) {}

  Var operator()(Var x, Var residual) {
    const Scope scope(*this);
    return norm(zg::dropout(dense(x), dropout) + residual);
  }
};

struct BertAttention : nn::Module {
  BertSelfAttention self;
  BertOutput output;

  BertAttention(const nn::Module* parent, const std::string& name, const BertConfig& config)
      : Module(parent, name),
        self(this, "self", config),
        output(this, "output", config.channels, config) {}

  Var operator()(Var x, Var mask) {
    const Scope scope(*this);
    return output(self(x, mask), x);
  }
};

struct BertIntermediate : nn::Module {
  nn::Linear dense;
  BertIntermediate(const nn::Module* parent, const std::string& name, const BertConfig& config)
      : Module(parent, name), dense(this, "dense", config.channels, config.hidden, BertLinear()) {}
  Var forward(Var x) override { return gelu_erf(dense(x)); }
};

struct BertLayer : nn::Module {
  BertAttention attention;
  BertIntermediate intermediate;
  BertOutput output;

  BertLayer(const nn::Module* parent, const std::string& name, const BertConfig& config)
      : Module(parent, name),
        attention(this, "attention", config),
        intermediate(this, "intermediate", config),
        output(this, "output", config.hidden, config) {}

  Var operator()(Var x, Var mask) {
    const Scope scope(*this);
    x = attention(x, mask);
    return output(intermediate(x), x);
  }
};

struct BertEncoder : nn::Module {
  nn::ModuleList<BertLayer> layer;
  BertEncoder(const nn::Module* parent, const std::string& name, const BertConfig& config)
      : Module(parent, name), layer(this, "layer", config.layers, config) {}
  Var operator()(Var x, Var mask) {
    for (BertLayer& one : layer) x = one(x, mask);
    return x;
  }
};

struct BertModel : nn::Module {
  BertEmbeddings embeddings;
  BertEncoder encoder;

  BertModel(const nn::Module* parent, const std::string& name, const BertConfig& config)
      : Module(parent, name),
        embeddings(this, "embeddings", config),
        encoder(this, "encoder", config) {}

  Var operator()(Var tokens, Var token_types, Var mask) {
    return encoder(embeddings(tokens, token_types), mask);
  }
};

// Turns the last layer's result into logits of the vocabulary.
struct BertHead : nn::Module {
  struct Transform : nn::Module {
    nn::Linear dense;
    nn::LayerNorm norm;
    Transform(const nn::Module* parent, const std::string& name, const BertConfig& config)
        : Module(parent, name),
          dense(this, "dense", config.channels, config.channels, BertLinear()),
          norm(this, "LayerNorm", config.channels, config.epsilon) {}
    Var forward(Var x) override { return norm(gelu_erf(dense(x))); }
  };
  Transform transform;
  nn::Parameter bias;  // (V)

  BertHead(const nn::Module* parent, const std::string& name, const BertConfig& config)
      : Module(parent, name),
        transform(this, "transform", config),
        bias(this, "bias", {config.vocabulary}, Initializer::Zeros()) {}

  Var operator()(Var x, Var table) {
    const Scope scope(*this);
    x = transform(x);
    return linear(x, table, bias);
  }
};

struct Bert : nn::Module {
  BertModel bert;
  BertHead predictions;

  explicit Bert(const BertConfig& config = {})
      : bert(this, "bert", config), predictions(this, "cls.predictions", config) {}

  // tokens (B, T) i64 -> logits (B, T, V). `token_types` (B, T) i64; none: all 0. `mask` i64 (B,
  // T): 0 for padding, which no position attends to; or (B): the lengths.
  Var operator()(Var tokens, Var token_types = {}, Var mask = {}) {
    const Var x = bert(tokens, token_types, mask);
    return predictions(x, bert.embeddings.word_embeddings.weight);
  }

 protected:
  Var forward(Var tokens) override { return (*this)(tokens, Var(), Var()); }
};

}  // namespace zg::models
