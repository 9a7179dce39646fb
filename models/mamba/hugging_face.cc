#include "models/mamba/hugging_face.h"

#include "models/hugging_face/config_file.h"

namespace zg::models {

constexpr int64_t kMostTaps = 1024;     // a few operations for each of them
constexpr int64_t kMostStates = 65536;  // initial values are listed

StatusOr<MambaConfig> ReadMambaConfig(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(ConfigFile file, ConfigFile::Open(directory));
  file.Expect("model_type", nullptr, "mamba");
  MambaConfig config;
  config.layers = file.Size("num_hidden_layers", 32, ConfigFile::kMostLayers);
  config.channels = file.Size("hidden_size", 768);
  const double inner = file.Number("expand", 2.0) * static_cast<double>(config.channels);
  if (inner >= 1.0 && inner <= static_cast<double>(ConfigFile::kMostSize)) {
    config.inner = static_cast<int64_t>(inner);
    file.Expect("intermediate_size", config.inner, config.inner);
  } else {
    file.AddProblem("expand: got {}, expected 1 to {} channels from the {} of hidden_size",
                    file.Number("expand", 2.0), ConfigFile::kMostSize, config.channels);
  }
  config.states = file.Size("state_size", 16, kMostStates);
  config.kernel = file.Size("conv_kernel", 4, kMostTaps);
  config.rank = (config.channels + 15) / 16;
  const ConfigFile::Json* const rank = file.Find("time_step_rank");
  if (rank != nullptr && *rank != "auto") config.rank = file.Size("time_step_rank");
  config.vocabulary = file.Size("vocab_size", 50280);
  config.epsilon = file.Number("layer_norm_epsilon", 1e-5);
  config.conv_bias = file.Flag("use_conv_bias", true);
  file.Expect("hidden_act", "silu", "silu");
  file.Expect("use_bias", false, false);
  file.Expect("tie_word_embeddings", true, true);
  if (config.kernel < 2) {
    file.AddProblem("conv_kernel: got {}, expected at least 2", config.kernel);
  }
  ZG_RETURN_IF_ERROR(file.status());
  return config;
}

std::string MambaConfigAsJson(const MambaConfig& config) {
  nlohmann::ordered_json json;
  json["architectures"] = {"MambaForCausalLM"};
  json["model_type"] = "mamba";
  json["hidden_size"] = config.channels;
  json["num_hidden_layers"] = config.layers;
  json["expand"] = static_cast<double>(config.inner) / static_cast<double>(config.channels);
  json["intermediate_size"] = config.inner;
  json["state_size"] = config.states;
  json["conv_kernel"] = config.kernel;
  json["time_step_rank"] = config.rank;
  json["vocab_size"] = config.vocabulary;
  json["layer_norm_epsilon"] = config.epsilon;
  json["use_conv_bias"] = config.conv_bias;
  json["use_bias"] = false;
  json["hidden_act"] = "silu";
  json["tie_word_embeddings"] = true;
  json["torch_dtype"] = "float32";
  return json.dump(2) + "\n";
}

}  // namespace zg::models
