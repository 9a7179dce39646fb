// config.json of transformers as the sizes of our models, and the messages for rejected ones.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "models/bert/hugging_face.h"
#include "models/bert/presets.h"
#include "models/llama/hugging_face.h"
#include "models/llama/presets.h"
#include "models/mamba/hugging_face.h"
#include "models/mamba/presets.h"
#include "models/vit/hugging_face.h"

namespace zg::models {
namespace {

using Json = nlohmann::json;

constexpr char kReference[] = "tests/reference/models/";

Json ReferenceConfig(const std::string& model) {
  return Json::parse(std::ifstream(kReference + model + "/config.json"));
}

// A directory with this config.json.
std::string Written(const std::string& text) {
  const std::string directory = ::testing::TempDir() + "/config";
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/config.json") << text;
  return directory;
}

std::string LlamaError(const Json& config) {
  const std::string directory = Written(config.dump());
  const std::string message = ReadLlamaConfig(directory).status().message();
  const std::string start = directory + "/config.json: is not of a model that ours can be:\n  ";
  EXPECT_EQ(message.substr(0, start.size()), start);
  return message.substr(std::min(start.size(), message.size()));
}

TEST(HuggingFaceConfig, OfLlama) {
  const StatusOr<LlamaConfig> config = ReadLlamaConfig(std::string(kReference) + "llama");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->key_heads, 2);
  EXPECT_EQ(config->channels, 32);
  EXPECT_EQ(config->hidden, 48);
  EXPECT_EQ(config->context, 64);
  EXPECT_EQ(config->vocabulary, 61);
  EXPECT_EQ(config->epsilon, 1e-5);
  EXPECT_EQ(config->rotary.theta, 500000.0);
  EXPECT_EQ(config->rotary.factor, 8.0);
  EXPECT_EQ(config->rotary.original_context, 32);
  EXPECT_FALSE(config->qkv_bias);
  EXPECT_FALSE(config->tied);
}

TEST(HuggingFaceConfig, OfQwen2) {
  const StatusOr<LlamaConfig> config = ReadLlamaConfig(std::string(kReference) + "qwen2");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_TRUE(config->qkv_bias);
  EXPECT_TRUE(config->tied);
  EXPECT_EQ(config->rotary.factor, 1.0);
}

TEST(HuggingFaceConfig, OfVit) {
  const StatusOr<VitConfig> config = ReadVitConfig(std::string(kReference) + "vit");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->image_size, 12);
  EXPECT_EQ(config->patch_size, 4);
  EXPECT_EQ(config->image_channels, 2);
  EXPECT_EQ(config->classes, 10);
}

TEST(HuggingFaceConfig, OfBert) {
  const StatusOr<BertConfig> config = ReadBertConfig(std::string(kReference) + "bert");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->channels, 32);
  EXPECT_EQ(config->hidden, 48);
  EXPECT_EQ(config->context, 16);
  EXPECT_EQ(config->vocabulary, 61);
  EXPECT_EQ(config->token_types, 2);
  EXPECT_EQ(config->epsilon, 1e-12);
  EXPECT_EQ(config->dropout, 0.1);
  EXPECT_EQ(config->attention_dropout, 0.1);
}

TEST(HuggingFaceConfig, WhatIsWrittenIsRead) {
  for (const BertPreset& preset : BertPresets()) {
    const std::string json = BertConfigAsJson(preset.config);
    const StatusOr<BertConfig> read = ReadBertConfig(Written(json));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(BertConfigAsJson(*read), json) << preset.name;
  }
  for (const LlamaPreset& preset : LlamaPresets()) {
    LlamaConfig config = preset.config;
    config.rotary.factor = 4.0;
    const StatusOr<LlamaConfig> read = ReadLlamaConfig(Written(LlamaConfigAsJson(config)));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(LlamaConfigAsJson(*read), LlamaConfigAsJson(config)) << preset.name;
    EXPECT_EQ(NumLlamaParameters(*read), NumLlamaParameters(config)) << preset.name;
    EXPECT_EQ(read->head_size(), config.head_size()) << preset.name;
    EXPECT_EQ(read->window, config.window) << preset.name;
  }
  for (const MambaPreset& preset : MambaPresets()) {
    const MambaConfig& config = preset.config;
    const StatusOr<MambaConfig> read = ReadMambaConfig(Written(MambaConfigAsJson(config)));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(MambaConfigAsJson(*read), MambaConfigAsJson(config)) << preset.name;
  }
  const StatusOr<VitConfig> vit = ReadVitConfig(Written(VitConfigAsJson({})));
  ASSERT_TRUE(vit.ok()) << vit.status().message();
  EXPECT_EQ(VitConfigAsJson(*vit), VitConfigAsJson({}));
}

TEST(HuggingFaceConfig, RefusesWhatOurModelDoesNotDo) {
  const auto with = [](const char* key, const Json& value) {
    Json config = ReferenceConfig("llama");
    config[key] = value;
    return LlamaError(config);
  };
  EXPECT_EQ(
      with("model_type", "gemma"),
      "model_type: got \"gemma\", expected one of \"llama\", \"mistral\", \"qwen2\", \"qwen3\", "
      "\"mixtral\", \"qwen3_moe\"");
  EXPECT_EQ(with("hidden_act", "gelu"), "hidden_act: got \"gelu\", expected \"silu\"");
  EXPECT_EQ(with("hidden_size", "32"),
            "hidden_size: got \"32\", expected a whole number of at least 1");
  EXPECT_EQ(with("num_key_value_heads", 3),
            "num_attention_heads: got 4, expected a multiple of the 3 num_key_value_heads");
  EXPECT_EQ(with("attention_bias", true), "attention_bias: got true, expected false");
  EXPECT_EQ(with("mlp_bias", true), "mlp_bias: got true, expected false");
  EXPECT_EQ(with("rope_parameters", {{"rope_type", "yarn"}}),
            "rope_parameters.rope_type: got \"yarn\", expected \"default\" or \"llama3\"");
  EXPECT_EQ(with("rms_norm_eps", -1.0), "rms_norm_eps: got -1.0, expected a number of at least 0");
  EXPECT_EQ(with("num_hidden_layers", nullptr),
            "num_hidden_layers: got nothing, expected a whole number of at least 1");
  EXPECT_EQ(with("num_hidden_layers", int64_t{1} << 31),
            "num_hidden_layers: got 2147483648, expected at most 10000");
  EXPECT_EQ(with("intermediate_size", int64_t{1} << 31),
            "intermediate_size: got 2147483648, expected at most 16777216");
}

TEST(HuggingFaceConfig, RefusesWhatOurBertDoesNotDo) {
  const auto with = [](const char* key, const Json& value) {
    Json config = ReferenceConfig("bert");
    config[key] = value;
    const std::string message = ReadBertConfig(Written(config.dump())).status().message();
    return message.substr(message.rfind("\n  ") + 3);
  };
  EXPECT_EQ(with("model_type", "roberta"), "model_type: got \"roberta\", expected \"bert\"");
  EXPECT_EQ(with("hidden_act", "relu"), "hidden_act: got \"relu\", expected \"gelu\"");
  EXPECT_EQ(with("is_decoder", true), "is_decoder: got true, expected false");
  EXPECT_EQ(with("tie_word_embeddings", false), "tie_word_embeddings: got false, expected true");
  EXPECT_EQ(with("position_embedding_type", "relative_key"),
            "position_embedding_type: got \"relative_key\", expected \"absolute\"");
  EXPECT_EQ(with("hidden_dropout_prob", 1.0), "hidden_dropout_prob: got 1, expected less than 1");
  EXPECT_EQ(with("num_attention_heads", 5),
            "num_attention_heads: got 5, expected a divisor of hidden_size 32");
}

TEST(HuggingFaceConfig, OfMamba) {
  const StatusOr<MambaConfig> config = ReadMambaConfig(std::string(kReference) + "mamba");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->channels, 24);
  EXPECT_EQ(config->inner, 48);
  EXPECT_EQ(config->states, 5);
  EXPECT_EQ(config->kernel, 3);
  EXPECT_EQ(config->rank, 4);
  EXPECT_EQ(config->vocabulary, 61);
  EXPECT_TRUE(config->conv_bias);
  const auto with = [](const char* key, const Json& value) {
    Json changed = ReferenceConfig("mamba");
    changed[key] = value;
    const StatusOr<MambaConfig> read = ReadMambaConfig(Written(changed.dump()));
    if (read.ok()) return std::to_string(read->rank);
    return read.status().message().substr(read.status().message().rfind("\n  ") + 3);
  };
  EXPECT_EQ(with("time_step_rank", "auto"), "2");
  EXPECT_EQ(with("time_step_rank", 0),
            "time_step_rank: got 0, expected a whole number of at least 1");
  EXPECT_EQ(with("conv_kernel", 1), "conv_kernel: got 1, expected at least 2");
  EXPECT_EQ(with("state_size", int64_t{1} << 31),
            "state_size: got 2147483648, expected at most 65536");
  EXPECT_EQ(with("expand", 1e300),
            "expand: got 1e+300, expected 1 to 16777216 channels from the 24 of hidden_size");
  EXPECT_EQ(with("intermediate_size", 47), "intermediate_size: got 47, expected 48");
  EXPECT_EQ(with("use_bias", true), "use_bias: got true, expected false");
  EXPECT_EQ(with("tie_word_embeddings", false), "tie_word_embeddings: got false, expected true");
  EXPECT_EQ(with("model_type", "mamba2"), "model_type: got \"mamba2\", expected \"mamba\"");
}

TEST(HuggingFaceConfig, OfMixtral) {
  const StatusOr<LlamaConfig> config = ReadLlamaConfig(std::string(kReference) + "mixtral");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->mixture.experts, 6);
  EXPECT_EQ(config->mixture.per_token, 2);
  EXPECT_FALSE(config->qkv_bias);
  const StatusOr<LlamaConfig> again = ReadLlamaConfig(Written(LlamaConfigAsJson(*config)));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->mixture.experts, 6);
  EXPECT_EQ(again->mixture.per_token, 2);
  EXPECT_EQ(NumLlamaParameters(*config), Llama(*config).num_parameters());

  Json changed = ReferenceConfig("mixtral");
  changed["sliding_window"] = 4096;
  changed["num_experts_per_tok"] = 7;
  EXPECT_EQ(LlamaError(changed),
            "num_experts_per_tok: got 7, expected at most the 6 of num_local_experts");
}

// Without a head_dim.
Json WithoutHeadSize(const std::string& model, int64_t heads) {
  Json config = ReferenceConfig(model);
  config.erase("head_dim");
  config["num_attention_heads"] = heads;
  return config;
}

TEST(HuggingFaceConfig, SizesOfHeads) {
  const auto size_of = [](const Json& config) {
    const StatusOr<LlamaConfig> read = ReadLlamaConfig(Written(config.dump()));
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read->head_size();
  };
  EXPECT_EQ(size_of(ReferenceConfig("qwen3")), 12);
  EXPECT_EQ(size_of(WithoutHeadSize("qwen3", 4)), 128);
  EXPECT_EQ(size_of(WithoutHeadSize("llama", 4)), 8);
  EXPECT_EQ(LlamaError(WithoutHeadSize("llama", 6)),
            "num_attention_heads: got 6, expected a divisor of hidden_size 32");
}

TEST(HuggingFaceConfig, Windows) {
  const auto window_of = [](const std::string& model, const Json& window) {
    Json config = ReferenceConfig(model);
    config.erase("sliding_window");
    if (!window.is_discarded()) config["sliding_window"] = window;
    const StatusOr<LlamaConfig> read = ReadLlamaConfig(Written(config.dump()));
    EXPECT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(LlamaModelType(*read), model);
    return read->window;
  };
  const Json missing(Json::value_t::discarded);
  EXPECT_EQ(window_of("mistral", 5), 5);
  EXPECT_EQ(window_of("mistral", missing), 4096);
  EXPECT_EQ(window_of("mixtral", 4096), 4096);
  EXPECT_EQ(window_of("mixtral", nullptr), 0);
  EXPECT_EQ(window_of("mixtral", missing), 0);
  EXPECT_EQ(window_of("qwen3", 4096), 0);  // as long as use_sliding_window is false
  Json config = ReferenceConfig("qwen3");
  config["use_sliding_window"] = true;
  EXPECT_EQ(LlamaError(config), "use_sliding_window: got true, expected false");
}

TEST(HuggingFaceConfig, OfQwen3Moe) {
  const StatusOr<LlamaConfig> config = ReadLlamaConfig(std::string(kReference) + "qwen3_moe");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->hidden, 20);
  EXPECT_EQ(config->mixture.experts, 6);
  EXPECT_EQ(config->mixture.per_token, 3);
  EXPECT_FALSE(config->mixture.shares_add_to_one);
  EXPECT_TRUE(config->has_head_norms);
  EXPECT_EQ(NumLlamaParameters(*config), Llama(*config).num_parameters());

  Json changed = ReferenceConfig("qwen3_moe");
  changed["mlp_only_layers"] = {0};
  EXPECT_EQ(LlamaError(changed), "mlp_only_layers: got [0], expected []");
  changed = ReferenceConfig("qwen3_moe");
  changed["decoder_sparse_step"] = 2;
  EXPECT_EQ(LlamaError(changed), "decoder_sparse_step: got 2, expected 1");
}

TEST(HuggingFaceConfig, PresetsHaveTheirParameters) {
  for (const BertPreset& preset : BertPresets()) {
    EXPECT_EQ(NumBertParameters(preset.config), Bert(preset.config).num_parameters())
        << preset.name;
  }
  // The number of transformers' BertForMaskedLM.
  EXPECT_EQ(NumBertParameters(FindBertPreset("bert-base")->config), 109514298);
  EXPECT_EQ(NumBertParameters(FindBertPreset("bert-large")->config), 335174458);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("llama3-8b")->config), 8030261248);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("qwen2-0.5b")->config), 494032768);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("qwen2-7b")->config), 7615616512);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("mixtral-8x7b")->config), 46702792704);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("mistral-7b")->config), 7241732096);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("qwen3-0.6b")->config), 596049920);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("qwen3-8b")->config), 8190735360);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("qwen3-30b-a3b")->config), 30532122624);
  EXPECT_EQ(NumLlamaParameters(FindLlamaPreset("mini")->config), 9638784);
  EXPECT_EQ(Mamba(FindMambaPreset("mamba-130m")->config).num_parameters(), 129135360);
  EXPECT_EQ(Mamba(FindMambaPreset("mamba-1.4b")->config).num_parameters(), 1372178432);
}

}  // namespace
}  // namespace zg::models
