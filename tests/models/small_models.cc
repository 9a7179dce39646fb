#include "tests/models/small_models.h"

#include "models/bert/model.h"
#include "models/llama/model.h"
#include "models/lstm/model.h"
#include "models/mamba/model.h"
#include "models/vit/model.h"
#include "tests/models/sensor_architectures.h"
#include "tests/models/small_architectures.h"

namespace zg::testing {
namespace {

constexpr int64_t kTime = 12;
constexpr int64_t kChannels = 32;

Var NextTokenLoss(Var logits, Inputs& in, int64_t batch) {
  return cross_entropy(logits, in.i64("y", {batch, kTime}));
}

SmallModel LlamaModel(const models::LlamaConfig& config) {
  auto llama = std::make_shared<models::Llama>(config);
  return {llama,
          [llama](Inputs& in, int64_t batch) {
            return (*llama)(in.i64("x", {batch, kTime}));
          },
          NextTokenLoss};
}

SmallModel MakeLlama() {
  models::LlamaConfig config = {2, 4, 2, kChannels, 48, 64, 61};
  config.rotary = {.theta = 500000.0, .factor = 8.0, .original_context = 32};
  return LlamaModel(config);
}

SmallModel MakeQwen2() {
  return LlamaModel({2, 4, 2, kChannels, 48, 64, 61, 1e-6, {}, /*qkv_bias=*/true, /*tied=*/true});
}

SmallModel MakeMixtral() {
  models::LlamaConfig config = {2, 4, 2, kChannels, 48, 64, 61};
  config.mixture = {6, 2};
  return LlamaModel(config);
}

SmallModel MakeMistral() {
  models::LlamaConfig config = {2, 4, 2, kChannels, 48, 64, 61};
  config.window = 5;
  return LlamaModel(config);
}

SmallModel MakeQwen3() {
  models::LlamaConfig config = {2, 4, 2, kChannels, 48, 64, 61, 1e-6};
  config.tied = config.has_head_norms = true;
  config.channels_per_head = 12;
  return LlamaModel(config);
}

SmallModel MakeQwen3Moe() {
  models::LlamaConfig config = {2, 4, 2, kChannels, 20, 64, 61, 1e-6};
  config.mixture = {6, 3, /*shares_add_to_one=*/false};
  config.has_head_norms = true;
  return LlamaModel(config);
}

SmallModel MakeMamba() {
  auto mamba = std::make_shared<models::Mamba>(models::MambaConfig{2, 24, 48, 5, 3, 4, 61});
  return {mamba,
          [mamba](Inputs& in, int64_t batch) {
            return (*mamba)(in.i64("x", {batch, kTime}));
          },
          NextTokenLoss};
}

SmallModel MakeVit() {
  auto vit = std::make_shared<models::Vit>(models::VitConfig{2, 4, kChannels, 48, 12, 4, 2});
  return {vit,
          [vit](Inputs& in, int64_t batch) {
            return (*vit)(in.f32("x", {batch, 2, 12, 12}));
          },
          [](Var logits, Inputs& in, int64_t batch) {
            return cross_entropy(logits, in.i64("y", {batch}));
          }};
}

SmallModel MakeBert() {
  auto bert = std::make_shared<models::Bert>(models::BertConfig{2, 4, kChannels, 48, 16, 61});
  return {bert,
          [bert](Inputs& in, int64_t batch) {
            const Shape shape = {batch, kTime};
            const Var tokens = in.i64("x", shape), types = in.i64("types", shape);
            return (*bert)(tokens, types, in.i64("mask", shape));
          },
          // The same number of tokens is masked in each sequence, so the mean over micro-batches is
          // the overall mean.
          [](Var logits, Inputs& in, int64_t batch) {
            return cross_entropy(logits, in.i64("y", {batch, kTime}), {.ignore_index = -100});
          }};
}

SmallModel MakeLstmLanguage() {
  auto lstm = std::make_shared<models::LstmLanguage>(models::LstmConfig{61, 16, 24, 2});
  return {lstm,
          [lstm](Inputs& in, int64_t batch) {
            return (*lstm)(in.i64("x", {batch, kTime}));
          },
          NextTokenLoss};
}

Var DistanceLoss(Var y, Inputs& in, int64_t batch) {
  return mse_loss(y, in.f32("y", {batch, kTime, kChannels}));
}

SmallModel MakeEncoder() {
  const nn::TransformerLayerOptions options = {.hidden = 48, .dropout = 0.0};
  auto layer = std::make_shared<nn::TransformerEncoderLayer>(nullptr, "", kChannels, 4, options);
  return {layer,
          [layer](Inputs& in, int64_t batch) {
            const Var x = in.f32("x", {batch, kTime, kChannels});
            return (*layer)(x, {.mask = in.i64("lengths", {batch})});
          },
          DistanceLoss};
}

SmallModel MakeDecoder() {
  const nn::TransformerLayerOptions options = {
      .hidden = 48, .dropout = 0.0, .gelu = true, .norm_first = true};
  auto layer = std::make_shared<nn::TransformerDecoderLayer>(nullptr, "", kChannels, 4, options);
  return {layer,
          [layer](Inputs& in, int64_t batch) {
            const Var x = in.f32("x", {batch, kTime, kChannels});
            const Var memory = in.f32("memory", {batch, 7, kChannels});
            return (*layer)(x, memory, {.causal = true});
          },
          DistanceLoss};
}

SmallModel MakeLstm() {
  auto lstm = std::make_shared<nn::LSTM>(nullptr, "", 8, 16, 2);
  return {lstm,
          [lstm](Inputs& in, int64_t batch) {
            return (*lstm)(in.f32("x", {batch, kTime, 8}));
          },
          [](Var y, Inputs& in, int64_t batch) {
            return mse_loss(y, in.f32("y", {batch, kTime, 16}));
          }};
}

SmallModel MakeGru() {
  auto gru = std::make_shared<nn::GRU>(nullptr, "", 8, 16, 2);
  return {gru,
          [gru](Inputs& in, int64_t batch) {
            return (*gru)(in.f32("x", {batch, kTime, 8}));
          },
          [](Var y, Inputs& in, int64_t batch) {
            return mse_loss(y, in.f32("y", {batch, kTime, 16}));
          }};
}

}  // namespace

const std::map<std::string, SmallModel (*)()>& SmallModels() {
  static const auto& models = *[] {
    auto* const made = new std::map<std::string, SmallModel (*)()>{
        {"llama", MakeLlama},     {"qwen2", MakeQwen2},        {"vit", MakeVit},
        {"encoder", MakeEncoder}, {"decoder", MakeDecoder},    {"lstm", MakeLstm},
        {"gru", MakeGru},         {"bert", MakeBert},          {"lstm_language", MakeLstmLanguage},
        {"mamba", MakeMamba},     {"mixtral", MakeMixtral},    {"mistral", MakeMistral},
        {"qwen3", MakeQwen3},     {"qwen3_moe", MakeQwen3Moe},
    };
    made->insert(SmallArchitectures().begin(), SmallArchitectures().end());
    made->insert(SensorArchitectures().begin(), SensorArchitectures().end());
    return made;
  }();
  return models;
}

std::string ReferenceFolder(const std::string& model) { return "tests/reference/models/" + model; }

ReferenceData::ReferenceData(const std::string& model)
    : file_(*SafetensorsFile::Open(ReferenceFolder(model) + "/data.safetensors")) {}

Status ReferenceData::Feed(Trainer& trainer, const std::string& program, int64_t step, int64_t part,
                           int64_t parts) const {
  for (const SafetensorsEntry& entry : file_.entries()) {
    const std::string prefix = "data.";
    if (entry.name.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string name = entry.name.substr(prefix.size());
    if (!program.empty() && name[0] == 'y') continue;  // what the loss reads
    const int64_t bytes = static_cast<int64_t>(entry.size_bytes()) / entry.shape[0] / parts;
    const DType dtype = entry.dtype == SafetensorsDType::kI64 ? DType::kI64 : DType::kF32;
    ZG_RETURN_IF_ERROR(trainer.executor().SetInput(
        program, name, dtype, file_.Data(entry) + (step * parts + part) * bytes, bytes));
  }
  return Status::Ok();
}

std::vector<float> ReferenceData::Floats(const std::string& name) const {
  const SafetensorsEntry* const entry = file_.Find(name);
  if (entry == nullptr) return {};
  const auto* const values = reinterpret_cast<const float*>(file_.Data(*entry));
  return std::vector<float>(values, values + entry->size_bytes() / sizeof(float));
}

}  // namespace zg::testing
