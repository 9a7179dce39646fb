#include "tests/eager/subjects.h"

#include "models/bert/model.h"
#include "models/classifier/model.h"
#include "models/gpt/model.h"
#include "models/llama/model.h"
#include "models/lstm/model.h"
#include "models/mamba/model.h"
#include "models/recipe/model.h"
#include "models/resnet/model.h"
#include "models/vit/model.h"
#include "tests/models/small_models.h"

namespace zg::testing {
namespace {

// Functions that the models do not use.
struct Mixture : nn::Module {
  Var forward(Var x) override {
    const Var h = hidden(x);
    const Var parts = concat({softmax(h), sigmoid(h) * tanh(h), exp(-square(h))}, -1);
    const Var centered = parts - mean(parts, {-1}, true);
    return matmul(centered * rsqrt(variance(centered, {-1}, 0.0, true) + 1e-5),
                  transpose(output, 0, 1));
  }
  nn::Linear hidden{this, "hidden", 10, 4};
  nn::Parameter output{this, "output", {7, 12}, Initializer::Normal(0.3)};
};

// Convolutions, pooling and norms of images, with a buffer's statistics.
struct Images : nn::Module {
  Var forward(Var x) override {
    x = pool(elu(norm(wide(x))));
    x = up(softplus(groups(deep(x))));
    return line(flatten(adaptive(average(x)), 2));
  }
  nn::Conv2d wide{this, "wide", 2, 8, 3, {.padding = 1}};
  nn::BatchNorm2d norm{this, "norm", 8};
  nn::MaxPool2d pool{this, "pool", 2};
  nn::Conv2d deep{this, "deep", 8, 8, 3, {.padding = 2, .dilation = 2, .groups = 4}};
  nn::GroupNorm groups{this, "groups", 2, 8};
  nn::ConvTranspose2d up{this, "up", 8, 6, 2, {.stride = 2}};
  nn::AvgPool2d average{this, "average", 2};
  nn::AdaptiveAvgPool2d adaptive{this, "adaptive", 4};
  nn::Conv1d line{this, "line", 6, 3, 3};
};

// Transformer layers: an encoder layer and a decoder layer whose memory is the encoder's result.
struct Layers : nn::Module {
  Var forward(Var x) override {
    const Var memory = encoder(x);
    const Var y = decoder(x, memory, {.causal = true});
    return attention(norm(mlp(y)), memory, x);
  }
  nn::TransformerEncoderLayer encoder{this, "encoder", 16, 4, {.hidden = 24, .dropout = 0.1}};
  nn::TransformerDecoderLayer decoder{this, "decoder", 16, 2, {.hidden = 20, .gelu = true}};
  nn::SwiGLU mlp{this, "mlp", 16, 24};
  nn::RMSNorm norm{this, "norm", 16};
  nn::MultiheadAttention attention{this, "attention", 16, 4};
};

template <typename Model, typename... Args>
std::shared_ptr<nn::Module> Make(const Args&... args) {
  return std::make_shared<Model>(args...);
}

TensorType Tokens(const Shape& shape) { return {DType::kI64, shape}; }
TensorType Numbers(const Shape& shape) { return {DType::kF32, shape}; }

Subject GptSubject() {
  models::GptConfig config;
  config.layers = 2;
  config.heads = 2;
  config.channels = 16;
  config.context = 12;
  config.vocabulary = 19;
  config.dropout = 0.1;
  return {Make<models::Gpt>(config), Tokens({3, 12}), 19, 17};
}

Subject LlamaSubject(bool is_qwen2) {
  models::LlamaConfig config = {2, 4, 2, 16, 24, 12, 19};
  config.qkv_bias = is_qwen2;
  config.tied = is_qwen2;
  return {Make<models::Llama>(config), Tokens({3, 12}), 19, 17};
}

// Only the adapters learn.
Subject LoraSubject() {
  Subject subject = LlamaSubject(false);
  subject.lora = std::make_shared<nn::Lora>(nn::LoraOptions{4, 8.0});
  for (nn::Parameter* parameter : subject.model->parameters()) parameter->freeze();
  subject.model->apply([&](nn::Module& module) {
    if (auto* linear = dynamic_cast<nn::Linear*>(&module)) subject.lora->adapt(*linear);
  });
  return subject;
}

Subject Architecture(const std::string& name, const TensorType& x, int64_t vocabulary = 0,
                     int64_t classes = 0) {
  return {SmallModels().at(name)().module, x, vocabulary, classes};
}

}  // namespace

const std::map<std::string, std::function<Subject()>>& Subjects() {
  using namespace models;  // NOLINT
  static const auto& subjects = *new std::map<std::string, std::function<Subject()>>{
      {"classifier",
       [] {
         return Subject{Make<Classifier>(ClassifierConfig{12, 8, 5}), Numbers({6, 12}), 0, 5};
       }},
      {"recipe",
       [] {
         return Subject{Make<Recipe>(3, 8), Numbers({5, 8})};
       }},
      {"gpt", GptSubject},
      {"llama", [] { return LlamaSubject(false); }},
      {"qwen2", [] { return LlamaSubject(true); }},
      {"mixtral",
       [] {
         LlamaConfig config = {2, 4, 2, 16, 24, 12, 19};
         config.mixture = {4, 2};
         return Subject{Make<Llama>(config), Tokens({3, 12}), 19, 17};
       }},
      {"qwen3",
       [] {
         LlamaConfig config = {2, 4, 2, 16, 24, 12, 19};
         config.has_head_norms = true;
         config.channels_per_head = 6;
         config.window = 5;
         return Subject{Make<Llama>(config), Tokens({3, 12}), 19, 17};
       }},
      {"lora", LoraSubject},
      {"bert",
       [] {
         return Subject{Make<Bert>(BertConfig{2, 2, 16, 24, 12, 19, 2, 1e-12, 0.1}),
                        Tokens({3, 12}), 19, 17};
       }},
      {"vit",
       [] {
         return Subject{Make<Vit>(VitConfig{2, 2, 16, 24, 8, 4, 2, 5}), Numbers({3, 2, 8, 8}), 0,
                        5};
       }},
      {"resnet",
       [] {
         return Subject{Make<ResNet>(ResNetConfig{2, 5, 1, {4, 8}}), Numbers({4, 2, 8, 8}), 0, 5};
       }},
      {"lstm",
       [] {
         return Subject{Make<LstmLanguage>(LstmConfig{19, 8, 12, 2}), Tokens({3, 7}), 19, 17};
       }},
      {"mamba",
       [] {
         return Subject{Make<Mamba>(MambaConfig{2, 8, 16, 4, 3, 3, 19}), Tokens({3, 7}), 19, 17};
       }},
      {"gru",
       [] {
         return Subject{Make<nn::GRU>(nullptr, "gru", 6, 10, 2), Numbers({3, 7, 6})};
       }},
      {"two_directions",
       [] {
         const nn::RecurrentOptions options = {2, 0.1, true};
         return Subject{Make<nn::LSTM>(nullptr, "lstm", 6, 10, options), Numbers({3, 7, 6})};
       }},
      {"mixture",
       [] {
         return Architecture("mixture", Tokens({3, 12}), 61, 61);
       }},
      {"state_space",
       [] {
         return Architecture("state_space", Numbers({3, 12, 8}));
       }},
      {"adversaries",
       [] {
         return Architecture("adversaries", Numbers({3, 4}));
       }},
      {"quantiser",
       [] {
         return Architecture("quantiser", Numbers({3, 1, 8, 8}));
       }},
      {"fast_weights",
       [] {
         return Architecture("fast_weights", Numbers({3, 3}));
       }},
      {"speech",
       [] {
         return Architecture("speech", Numbers({3, 12, 8}));
       }},
      {"looker",
       [] {
         return Architecture("looker", Numbers({3, 1, 8, 8}), 0, 5);
       }},
      {"video",
       [] {
         return Architecture("video", Numbers({3, 2, 4, 8, 8}), 0, 5);
       }},
      {"field",
       [] {
         return Architecture("field", Numbers({3, 7, 3}));
       }},
      {"images",
       [] {
         return Subject{Make<Images>(), Numbers({3, 2, 16, 16})};
       }},
      {"layers",
       [] {
         return Subject{Make<Layers>(), Numbers({3, 7, 16})};
       }},
      {"functions",
       [] {
         return Subject{Make<Mixture>(), Numbers({5, 10}), 0, 7};
       }},
  };
  return subjects;
}

}  // namespace zg::testing
