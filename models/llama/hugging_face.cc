#include "models/llama/hugging_face.h"

#include <fmt/format.h>

#include <array>

#include "models/hugging_face/config_file.h"

namespace zg::models {
namespace {

using Json = ConfigFile::Json;

// Reads "rope_parameters", or, before transformers 5, "rope_scaling" and "rope_theta".
RotaryOptions ReadRotary(ConfigFile& file) {
  RotaryOptions rotary;
  rotary.theta = file.Number("rope_theta", 10000.0);
  const Json* scaling = file.Find("rope_parameters");
  if (scaling == nullptr) scaling = file.Find("rope_scaling");
  if (scaling == nullptr) return rotary;
  if (!scaling->is_object()) {
    file.AddProblem("rope_parameters: got {}, expected an object", scaling->dump());
    return rotary;
  }
  const auto number = [&](const char* key, double by_default) {
    const auto found = scaling->find(key);
    if (found == scaling->end() || found->is_null()) return by_default;
    if (found->is_number() && found->get<double>() > 0.0) return found->get<double>();
    file.AddProblem("rope_parameters.{}: got {}, expected a positive number", key, found->dump());
    return by_default;
  };
  rotary.theta = number("rope_theta", rotary.theta);
  const Json type = scaling->value("rope_type", scaling->value("type", Json("default")));
  if (type == "llama3") {
    rotary.factor = number("factor", 1.0);
    rotary.low_frequency = number("low_freq_factor", 1.0);
    rotary.high_frequency = number("high_freq_factor", 4.0);
    rotary.original_context =
        static_cast<int64_t>(number("original_max_position_embeddings", 8192.0));
  } else if (type != "default") {
    file.AddProblem("rope_parameters.rope_type: got {}, expected \"default\" or \"llama3\"",
                    type.dump());
  }
  return rotary;
}

// transformers' models that ours can be.
struct Kin {
  std::string_view type;
  std::string_view architecture;
  bool has_qkv_bias = false;
  bool has_head_norms = false;
  bool has_window = false;
  bool has_experts = false;
};

constexpr std::array<Kin, 6> kKin = {{
    {"llama", "LlamaForCausalLM"},
    {"mistral", "MistralForCausalLM", false, false, true},
    {"qwen2", "Qwen2ForCausalLM", true},
    {"qwen3", "Qwen3ForCausalLM", false, true},
    {"mixtral", "MixtralForCausalLM", false, false, true, true},
    {"qwen3_moe", "Qwen3MoeForCausalLM", false, true, false, true},
}};

// The first of these that has what the config has, a Llama if there is none.
const Kin& KinOf(const LlamaConfig& config) {
  for (const Kin& kin : kKin) {
    if (kin.has_qkv_bias == config.qkv_bias && kin.has_head_norms == config.has_head_norms &&
        (kin.has_window || config.window == 0) && kin.has_experts == (config.mixture.experts > 0)) {
      return kin;
    }
  }
  return kKin.front();
}

// Null and a problem if there is none.
const Kin* FindKin(ConfigFile& file) {
  const Json* const type = file.Find("model_type");
  std::string known;
  for (const Kin& kin : kKin) {
    if (type != nullptr && *type == std::string(kin.type)) return &kin;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", kin.type);
  }
  file.AddProblem("model_type: got {}, expected one of {}",
                  type == nullptr ? "nothing" : type->dump(), known);
  return nullptr;
}

void SetHeadSize(ConfigFile& file, int64_t by_default, LlamaConfig* config) {
  if (config->heads % config->key_heads != 0) {
    file.AddProblem(
        "num_attention_heads: got {}, expected a multiple of the {} num_key_value_heads",
        config->heads, config->key_heads);
  }
  const int64_t size = file.Size("head_dim", by_default);
  if (size * config->heads != config->channels) config->channels_per_head = size;
  if (size == 0 && config->channels % config->heads != 0) {
    file.AddProblem("num_attention_heads: got {}, expected a divisor of hidden_size {}",
                    config->heads, config->channels);
  }
}

// 0: no window.
int64_t ReadWindow(ConfigFile& file, int64_t by_default) {
  if (!file.Has("sliding_window")) return by_default;
  return file.Size("sliding_window", /*by_default=*/0);  // of null
}

ExpertsConfig ReadExperts(ConfigFile& file, const Kin& kin) {
  ExpertsConfig mixture;
  const bool is_mixtral = kin.type == "mixtral";
  // Files of both names are about.
  const char* const experts = file.Has("num_experts") ? "num_experts" : "num_local_experts";
  mixture.experts = file.Size(experts, is_mixtral ? 8 : 128);
  mixture.per_token = file.Size("num_experts_per_tok", is_mixtral ? 2 : 8);
  if (mixture.per_token > mixture.experts) {
    file.AddProblem("num_experts_per_tok: got {}, expected at most the {} of {}", mixture.per_token,
                    mixture.experts, experts);
  }
  if (is_mixtral) {
    file.Expect("router_jitter_noise", 0.0, 0.0);
  } else {
    mixture.shares_add_to_one = file.Flag("norm_topk_prob", false);
    file.Expect("decoder_sparse_step", 1, 1);  // every layer has a mixture
    file.Expect("mlp_only_layers", Json::array(), Json::array());
  }
  return mixture;
}

}  // namespace

StatusOr<LlamaConfig> ReadLlamaConfig(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(ConfigFile file, ConfigFile::Open(directory));
  const Kin* const kin = FindKin(file);
  ZG_RETURN_IF_ERROR(file.status());
  LlamaConfig config;
  config.layers = file.Size("num_hidden_layers", std::nullopt, ConfigFile::kMostLayers);
  config.heads = file.Size("num_attention_heads");
  config.key_heads = file.Size("num_key_value_heads", config.heads);
  config.channels = file.Size("hidden_size");
  const bool is_qwen3_moe = kin->type == "qwen3_moe";
  config.hidden = file.Size(is_qwen3_moe ? "moe_intermediate_size" : "intermediate_size");
  config.context = file.Size("max_position_embeddings");
  config.vocabulary = file.Size("vocab_size");
  config.epsilon = file.Number("rms_norm_eps", 1e-6);
  config.rotary = ReadRotary(file);
  config.qkv_bias = kin->has_qkv_bias;
  config.has_head_norms = kin->has_head_norms;
  config.tied = file.Flag("tie_word_embeddings", false);
  SetHeadSize(file, kin->type == "qwen3" ? 128 : 0, &config);
  if (kin->has_window) {
    config.window = ReadWindow(file, kin->type == "mistral" ? 4096 : 0);
  } else if (kin->type != "llama") {
    file.Expect("use_sliding_window", false, false);
  }
  if (kin->has_experts) config.mixture = ReadExperts(file, *kin);
  file.Expect("hidden_act", "silu", "silu");
  file.Expect("attention_bias", false, false);
  file.Expect("attention_dropout", 0.0, 0.0);
  file.Expect("mlp_bias", false, false);
  ZG_RETURN_IF_ERROR(file.status());
  return config;
}

std::string_view LlamaModelType(const LlamaConfig& config) { return KinOf(config).type; }

std::string LlamaConfigAsJson(const LlamaConfig& config) {
  const Kin& kin = KinOf(config);
  nlohmann::ordered_json json;
  json["architectures"] = {kin.architecture};
  json["model_type"] = kin.type;
  json["hidden_size"] = config.channels;
  json["intermediate_size"] = config.hidden;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["num_key_value_heads"] = config.key_heads;
  json["max_position_embeddings"] = config.context;
  json["vocab_size"] = config.vocabulary;
  json["rms_norm_eps"] = config.epsilon;
  json["hidden_act"] = "silu";
  json["head_dim"] = config.head_size();
  if (kin.has_window) {
    json["sliding_window"] = nullptr;
    if (config.window > 0) json["sliding_window"] = config.window;
  }
  if (kin.has_experts) {
    json["num_experts_per_tok"] = config.mixture.per_token;
    if (kin.type == "mixtral") {
      json["num_local_experts"] = config.mixture.experts;
    } else {
      json["num_experts"] = config.mixture.experts;
      json["moe_intermediate_size"] = config.hidden;
      json["norm_topk_prob"] = config.mixture.shares_add_to_one;
    }
  }
  json["tie_word_embeddings"] = config.tied;
  json["rope_theta"] = config.rotary.theta;
  if (config.rotary.factor != 1.0) {
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", config.rotary.factor},
                            {"low_freq_factor", config.rotary.low_frequency},
                            {"high_freq_factor", config.rotary.high_frequency},
                            {"original_max_position_embeddings", config.rotary.original_context}};
  }
  json["torch_dtype"] = "float32";
  return json.dump(2) + "\n";
}

}  // namespace zg::models
