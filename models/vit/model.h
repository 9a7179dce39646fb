// ViT (Dosovitskiy et al., arXiv 2010.11929): an encoder over a class token and an image's patches,
// which classifies the last state of the class token. Parameters have the names and layouts of
// transformers' ViTForImageClassification, so its files can be loaded. Trained with
// cross_entropy(model(images), classes). Shapes: B batch, N patches, C channels.
#pragma once

#include "framework/nn/nn.h"

namespace zg::models {

// The defaults are a model of 1.2 million parameters for 28 x 28 pixels.
struct VitConfig {
  int64_t layers = 6;
  int64_t heads = 4;
  int64_t channels = 128;
  int64_t hidden = 512;
  int64_t image_size = 28;
  int64_t patch_size = 4;
  int64_t image_channels = 1;
  int64_t classes = 10;
  double epsilon = 1e-12;
  double dropout = 0.0;  // on the embeddings and on each sublayer's output

  int64_t patches() const { return (image_size / patch_size) * (image_size / patch_size); }
};

inline constexpr double kVitStd = 0.02;

inline nn::LinearOptions VitLinear() {
  return {true, Initializer::Normal(kVitStd), Initializer::Zeros()};
}

// A Linear called "dense", as in transformers' names.
struct VitDense : nn::Module {
  nn::Linear dense;
  VitDense(const nn::Module* parent, const std::string& name, int64_t in, int64_t out)
      : Module(parent, name), dense(this, "dense", in, out, VitLinear()) {}
  Var forward(Var x) override { return dense(x); }
};

struct VitSelfAttention : nn::Module {
  int64_t heads;
  nn::Linear query;
  nn::Linear key;
  nn::Linear value;

  VitSelfAttention(const nn::Module* parent, const std::string& name, const VitConfig& config)
      : Module(parent, name),
        heads(config.heads),
        query(this, "query", config.channels, config.channels, VitLinear()),
        key(this, "key", config.channels, config.channels, VitLinear()),
        value(this, "value", config.channels, config.channels, VitLinear()) {}

  Var forward(Var x) override {
    const Var q = query(x);
    const Var k = key(x);
    AttentionOptions options;
    options.heads = heads;
    return zg::attention(q, k, value(x), options);
  }
};

struct VitAttention : nn::Module {
  VitSelfAttention attention;
  VitDense output;

  VitAttention(const nn::Module* parent, const std::string& name, const VitConfig& config)
      : Module(parent, name),
        attention(this, "attention", config),
        output(this, "output", config.channels, config.channels) {}

  Var forward(Var x) override { return output(attention(x)); }
};

struct VitLayer : nn::Module {
  VitAttention attention;
  VitDense intermediate;
  VitDense output;
  nn::LayerNorm layernorm_before;
  nn::LayerNorm layernorm_after;
  double dropout;

  VitLayer(const nn::Module* parent, const std::string& name, const VitConfig& config)
      : Module(parent, name),
        attention(this, "attention", config),
        intermediate(this, "intermediate", config.channels, config.hidden),
        output(this, "output", config.hidden, config.channels),
        layernorm_before(this, "layernorm_before", config.channels, config.epsilon),
        layernorm_after(this, "layernorm_after", config.channels, config.epsilon),
        dropout(config.dropout) {}

  Var forward(Var x) override {
    x = x + zg::dropout(attention(layernorm_before(x)), dropout);
    return x + zg::dropout(output(gelu_erf(intermediate(layernorm_after(x)))), dropout);
  }
};

// A linear layer on each patch: a convolution whose stride is its size.
struct VitPatches : nn::Module {
  struct Projection : nn::Module {
    VitConfig config;
    nn::Parameter weight;  // (C, image channels, patch, patch)
    nn::Parameter bias;

    Projection(const nn::Module* parent, const std::string& name, const VitConfig& config)
        : Module(parent, name),
          config(config),
          weight(this, "weight",
                 {config.channels, config.image_channels, config.patch_size, config.patch_size},
                 Initializer::Normal(kVitStd)),
          bias(this, "bias", {config.channels}, Initializer::Zeros()) {}

    Var forward(Var x) override {
      const int64_t size = config.patch_size;
      const int64_t side = config.image_size / size;
      x = reshape(x, {x.dim(0), config.image_channels, side, size, side, size});
      x = reshape(permute(x, {0, 2, 4, 1, 3, 5}), {x.dim(0), config.patches(), -1});
      const Var matrix = reshape(weight, {config.channels, -1});
      return linear(x, matrix, bias);
    }
  };
  Projection projection;

  VitPatches(const nn::Module* parent, const std::string& name, const VitConfig& config)
      : Module(parent, name), projection(this, "projection", config) {}
  Var forward(Var x) override { return projection(x); }
};

struct VitEmbeddings : nn::Module {
  nn::Parameter cls_token;            // (1, 1, C)
  nn::Parameter position_embeddings;  // (1, 1 + N, C)
  VitPatches patch_embeddings;

  VitEmbeddings(const nn::Module* parent, const std::string& name, const VitConfig& config)
      : Module(parent, name),
        cls_token(this, "cls_token", {1, 1, config.channels}, Initializer::Normal(kVitStd)),
        position_embeddings(this, "position_embeddings", {1, 1 + config.patches(), config.channels},
                            Initializer::Normal(kVitStd)),
        patch_embeddings(this, "patch_embeddings", config) {}

  Var forward(Var images) override {
    const Var patches = patch_embeddings(images);
    const Var token = expand(cls_token, {images.dim(0), 1, -1});
    return concat({token, patches}, 1) + position_embeddings;
  }
};

struct VitEncoder : nn::Module {
  nn::ModuleList<VitLayer> layer;
  VitEncoder(const nn::Module* parent, const std::string& name, const VitConfig& config)
      : Module(parent, name), layer(this, "layer", config.layers, config) {}
  Var forward(Var x) override {
    for (VitLayer& one : layer) x = one(x);
    return x;
  }
};

struct VitModel : nn::Module {
  VitConfig config;
  VitEmbeddings embeddings;
  VitEncoder encoder;
  nn::LayerNorm layernorm;

  VitModel(const nn::Module* parent, const std::string& name, const VitConfig& config)
      : Module(parent, name),
        config(config),
        embeddings(this, "embeddings", config),
        encoder(this, "encoder", config),
        layernorm(this, "layernorm", config.channels, config.epsilon) {}

  Var forward(Var images) override {
    const Shape expected = {images.dim(0), config.image_channels, config.image_size,
                            config.image_size};
    if (images.shape() != expected) {
      return fail(InvalidArgument("got images {}, expected {}", images.shape().ToString(),
                                  expected.ToString()));
    }
    return layernorm(encoder(zg::dropout(embeddings(images), config.dropout)));
  }
};

struct Vit : nn::Module {
  VitModel vit;
  nn::Linear classifier;

  explicit Vit(const VitConfig& config = {})
      : vit(this, "vit", config),
        classifier(this, "classifier", config.channels, config.classes, VitLinear()) {}

  // images (B, image channels, size, size) -> (B, classes)
  Var forward(Var images) override { return classifier(select(vit(images), 1, 0)); }
};

}  // namespace zg::models
