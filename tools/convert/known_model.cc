#include "tools/convert/known_model.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "framework/io/mapped_file.h"
#include "models/bert/hugging_face.h"
#include "models/bert/presets.h"
#include "models/gpt/model.h"
#include "models/hugging_face/config_file.h"
#include "models/llama/hugging_face.h"
#include "models/llama/presets.h"
#include "models/mamba/hugging_face.h"
#include "models/mamba/presets.h"
#include "models/vit/hugging_face.h"
#include "tools/checkpoint/foreign_names.h"
#include "tools/checkpoint/gpt2_config.h"

namespace zg::convert_tool {
namespace {

using checkpoint_tool::FillPattern;
using checkpoint_tool::ForeignFormat;
using checkpoint_tool::MatchPattern;
using checkpoint_tool::NameRule;
using models::ConfigFile;

// A model with their names.
KnownModel Known(const std::string& type, const nn::Module& model) {
  KnownModel known;
  known.type = type;
  for (const NamedParameter& parameter : model.named_parameters()) {
    known.tensors.push_back({parameter.name, {parameter.name}, parameter.shape.dims()});
  }
  return known;
}

// Their files may also have tensor `ours` under another name.
void AddName(KnownModel* known, std::string_view ours, const std::string& name) {
  for (KnownTensor& tensor : known->tensors) {
    if (tensor.ours == ours) tensor.theirs.push_back(name);
  }
}

// How their files name a mixture of experts, in a layer.
struct ExpertNames {
  std::string_view router;
  std::string_view experts;  // before the number of one
  std::string_view gate, up, down;
};

constexpr ExpertNames kMixtral = {"block_sparse_moe.gate.weight", "block_sparse_moe.experts", "w1",
                                  "w3", "w2"};
constexpr ExpertNames kQwen3 = {"mlp.gate.weight", "mlp.experts", "gate_proj", "up_proj",
                                "down_proj"};

// Adds the matrices (rows, columns) called `names` of every expert, which are side by side in `ours`.
void AddExperts(const KnownTensor& ours, std::string_view experts,
                const std::vector<std::string_view>& names, std::vector<KnownTensor>* tensors) {
  const auto num_names = static_cast<int64_t>(names.size());
  const std::vector<int64_t> matrix = {ours.shape[1] / num_names, ours.shape[2]};
  const std::string layer = ours.ours.substr(0, ours.ours.find("mlp."));
  int64_t begin = 0;
  for (int64_t expert = 0; expert < ours.shape[0]; ++expert) {
    for (const std::string_view name : names) {
      tensors->push_back({ours.ours,
                          {fmt::format("{}{}.{}.{}.weight", layer, experts, expert, name)},
                          matrix,
                          false,
                          ours.shape,
                          begin});
      begin += matrix[0] * matrix[1];
    }
  }
}

// Their files have every matrix of every expert by itself.
void SplitExperts(KnownModel* known, const ExpertNames& names) {
  std::vector<KnownTensor> tensors;
  for (KnownTensor& tensor : known->tensors) {
    if (MatchPattern("model.layers.*.mlp.experts.gate_up_proj", tensor.ours).has_value()) {
      AddExperts(tensor, names.experts, {names.gate, names.up}, &tensors);
    } else if (MatchPattern("model.layers.*.mlp.experts.down_proj", tensor.ours).has_value()) {
      AddExperts(tensor, names.experts, {names.down}, &tensors);
    } else {
      if (const auto layer = MatchPattern("model.layers.*.mlp.gate.weight", tensor.ours)) {
        tensor.theirs = {fmt::format("model.layers.{}.{}", *layer, names.router)};
      }
      tensors.push_back(std::move(tensor));
    }
  }
  known->tensors = std::move(tensors);
}

KnownModel Llama(const models::LlamaConfig& config) {
  const std::string type(models::LlamaModelType(config));
  KnownModel known = Known(type, models::Llama(config));
  if (config.mixture.experts > 0) SplitExperts(&known, type == "mixtral" ? kMixtral : kQwen3);
  if (config.tied) AddName(&known, "model.embed_tokens.weight", "lm_head.weight");
  known.unused = {"model.rotary_emb.inv_freq", "model.layers.*.self_attn.rotary_emb.inv_freq"};
  return known;
}

KnownModel Mamba(const models::MambaConfig& config) {
  KnownModel known = Known("mamba", models::Mamba(config));
  AddName(&known, "backbone.embeddings.weight", "lm_head.weight");
  AddName(&known, "backbone.embeddings.weight", "backbone.embedding.weight");
  return known;
}

KnownModel Bert(const models::BertConfig& config) {
  KnownModel known = Known("bert", models::Bert(config));
  // Names as converted from TensorFlow.
  for (KnownTensor& tensor : known.tensors) {
    const std::string& name = tensor.ours;
    for (const auto& [now, before] :
         {std::pair("LayerNorm.weight", "gamma"), std::pair("LayerNorm.bias", "beta")}) {
      const size_t place = name.rfind(now);
      if (place == name.npos) continue;
      tensor.theirs.push_back(name.substr(0, name.rfind('.') + 1) + before);
    }
  }
  AddName(&known, "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight");
  AddName(&known, "cls.predictions.bias", "cls.predictions.decoder.bias");
  known.unused = {"bert.embeddings.position_ids", "bert.pooler.dense.weight",
                  "bert.pooler.dense.bias", "cls.seq_relationship.weight",
                  "cls.seq_relationship.bias"};
  return known;
}

KnownModel Vit(const models::VitConfig& config) {
  KnownModel known = Known("vit", models::Vit(config));
  known.unused = {"vit.pooler.dense.weight", "vit.pooler.dense.bias"};
  return known;
}

StatusOr<KnownModel> ReadGpt2(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(ConfigFile file, ConfigFile::Open(directory));
  models::GptConfig config;
  config.layers = file.Size("n_layer", 12);
  config.channels = file.Size("n_embd", 768);
  config.context = file.Size("n_positions", 1024);
  config.vocabulary = file.Size("vocab_size", 50257);
  ZG_RETURN_IF_ERROR(file.status());
  const checkpoint_tool::Gpt2Config sizes = {config.layers, 0, config.channels, config.context,
                                             config.vocabulary};
  ZG_ASSIGN_OR_RETURN(config.heads,
                      checkpoint_tool::HeadsOfGpt2Config(directory + "/config.json", sizes));
  ZG_ASSIGN_OR_RETURN(const ForeignFormat* format, checkpoint_tool::FindForeignFormat("gpt2"));
  KnownModel known = Known("gpt2", models::Gpt(config));
  for (KnownTensor& tensor : known.tensors) {
    for (const NameRule& rule : format->rules) {
      const std::optional<int> number = MatchPattern(rule.ours, tensor.ours);
      if (!number) continue;
      const std::string name = FillPattern(rule.theirs, *number);
      tensor.theirs = {std::string(format->prefix) + name, name};
      tensor.is_transposed = rule.is_transposed;
    }
  }
  AddName(&known, format->tied_to, std::string(format->tied_copy));
  known.unused = {"h.*.attn.bias", "h.*.attn.masked_bias", "transformer.h.*.attn.bias",
                  "transformer.h.*.attn.masked_bias"};
  return known;
}

StatusOr<KnownModel> ReadLlama(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(const models::LlamaConfig config, models::ReadLlamaConfig(directory));
  return Llama(config);
}

StatusOr<KnownModel> ReadMamba(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(const models::MambaConfig config, models::ReadMambaConfig(directory));
  return Mamba(config);
}

StatusOr<KnownModel> ReadBert(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(const models::BertConfig config, models::ReadBertConfig(directory));
  return Bert(config);
}

StatusOr<KnownModel> ReadVit(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(const models::VitConfig config, models::ReadVitConfig(directory));
  return Vit(config);
}

using Reader = StatusOr<KnownModel> (*)(const std::string& directory);

constexpr std::array<std::pair<std::string_view, Reader>, 10> kReaders = {{{"llama", ReadLlama},
                                                                           {"mistral", ReadLlama},
                                                                           {"qwen2", ReadLlama},
                                                                           {"qwen3", ReadLlama},
                                                                           {"mixtral", ReadLlama},
                                                                           {"qwen3_moe", ReadLlama},
                                                                           {"mamba", ReadMamba},
                                                                           {"bert", ReadBert},
                                                                           {"vit", ReadVit},
                                                                           {"gpt2", ReadGpt2}}};

}  // namespace

StatusOr<KnownModel> ReadKnownModel(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Open(directory));
  const ConfigFile::Json* const type = file.Find("model_type");
  std::string known;
  for (const auto& [name, read] : kReaders) {
    if (type != nullptr && *type == std::string(name)) {
      ZG_ASSIGN_OR_RETURN(KnownModel model, read(directory));
      model.type = name;  // a Mistral without a window reads as a Llama
      ZG_ASSIGN_OR_RETURN(const MappedFile text, MappedFile::Open(directory + "/config.json"));
      model.config.assign(reinterpret_cast<const char*>(text.data()), text.size());
      return model;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  return InvalidArgument(
      "{}/config.json: model_type: got {}, expected one of {}, which models of ours are; others "
      "need a model of your own with their names",
      directory, type == nullptr ? "nothing" : type->dump(), known);
}

StatusOr<KnownModel> KnownModelOfPreset(const std::string& preset) {
  std::string names;
  const auto is_it = [&](std::string_view program, std::string_view name) {
    const std::string full = fmt::format("{}/{}", program, name);
    names += (names.empty() ? "" : ", ") + full;
    return preset == full;
  };
  const auto with_config = [](KnownModel model, std::string config) {
    model.config = std::move(config);
    return model;
  };
  for (const models::LlamaPreset& one : models::LlamaPresets()) {
    if (!is_it("llama", one.name)) continue;
    return with_config(Llama(one.config), models::LlamaConfigAsJson(one.config));
  }
  for (const models::MambaPreset& one : models::MambaPresets()) {
    if (!is_it("mamba", one.name)) continue;
    return with_config(Mamba(one.config), models::MambaConfigAsJson(one.config));
  }
  for (const models::BertPreset& one : models::BertPresets()) {
    if (!is_it("bert", one.name)) continue;
    return with_config(Bert(one.config), models::BertConfigAsJson(one.config));
  }
  return InvalidArgument("--preset: got {}, expected one of {}", preset, names);
}

}  // namespace zg::convert_tool
