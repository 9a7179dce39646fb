#include "models/llama/hugging_face.h"

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

}  // namespace

StatusOr<LlamaConfig> ReadLlamaConfig(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(ConfigFile file, ConfigFile::Open(directory));
  const Json* const type = file.Find("model_type");
  const bool is_qwen2 = type != nullptr && *type == "qwen2";
  const bool is_mixtral = type != nullptr && *type == "mixtral";
  if (!is_qwen2 && !is_mixtral) file.Expect("model_type", nullptr, "llama");
  LlamaConfig config;
  config.layers = file.Size("num_hidden_layers");
  config.heads = file.Size("num_attention_heads");
  config.key_heads = file.Size("num_key_value_heads", config.heads);
  config.channels = file.Size("hidden_size");
  config.hidden = file.Size("intermediate_size");
  config.context = file.Size("max_position_embeddings");
  config.vocabulary = file.Size("vocab_size");
  config.epsilon = file.Number("rms_norm_eps", 1e-6);
  config.rotary = ReadRotary(file);
  config.qkv_bias = is_qwen2;
  config.tied = file.Flag("tie_word_embeddings", false);
  file.Expect("hidden_act", "silu", "silu");
  if (config.channels % config.heads != 0 || config.heads % config.key_heads != 0) {
    file.AddProblem(
        "num_attention_heads: got {}, with {} num_key_value_heads and a hidden_size of {}, expected "
        "a multiple of the first and a divisor of the second",
        config.heads, config.key_heads, config.channels);
  } else {
    file.Expect("head_dim", config.channels / config.heads, config.channels / config.heads);
  }
  if (is_qwen2) {
    file.Expect("use_sliding_window", false, false);
  } else if (is_mixtral) {
    config.mixture.experts = file.Size("num_local_experts", 8);
    config.mixture.per_token = file.Size("num_experts_per_tok", 2);
    if (config.mixture.per_token > config.mixture.experts) {
      file.AddProblem("num_experts_per_tok: got {}, expected at most the {} of num_local_experts",
                      config.mixture.per_token, config.mixture.experts);
    }
    file.Expect("sliding_window", nullptr, nullptr);
    file.Expect("router_jitter_noise", 0.0, 0.0);
  } else {
    file.Expect("attention_bias", false, false);
    file.Expect("mlp_bias", false, false);
  }
  ZG_RETURN_IF_ERROR(file.status());
  return config;
}

std::string LlamaConfigAsJson(const LlamaConfig& config) {
  nlohmann::ordered_json json;
  const bool has_experts = config.mixture.experts > 0;
  json["architectures"] = {has_experts
                               ? "MixtralForCausalLM"
                               : (config.qkv_bias ? "Qwen2ForCausalLM" : "LlamaForCausalLM")};
  json["model_type"] = has_experts ? "mixtral" : (config.qkv_bias ? "qwen2" : "llama");
  json["hidden_size"] = config.channels;
  json["intermediate_size"] = config.hidden;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["num_key_value_heads"] = config.key_heads;
  json["max_position_embeddings"] = config.context;
  json["vocab_size"] = config.vocabulary;
  json["rms_norm_eps"] = config.epsilon;
  json["hidden_act"] = "silu";
  if (has_experts) {
    json["num_local_experts"] = config.mixture.experts;
    json["num_experts_per_tok"] = config.mixture.per_token;
    json["sliding_window"] = nullptr;
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
