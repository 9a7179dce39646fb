#include "models/vit/hugging_face.h"

#include "models/hugging_face/config_file.h"

namespace zg::models {

StatusOr<VitConfig> ReadVitConfig(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(ConfigFile file, ConfigFile::Open(directory));
  file.Expect("model_type", nullptr, "vit");
  VitConfig config;
  config.layers = file.Size("num_hidden_layers", 12, ConfigFile::kMostLayers);
  config.heads = file.Size("num_attention_heads", 12);
  config.channels = file.Size("hidden_size", 768);
  config.hidden = file.Size("intermediate_size", 3072);
  config.image_size = file.Size("image_size", 224);
  config.patch_size = file.Size("patch_size", 16);
  config.image_channels = file.Size("num_channels", 3);
  const ConfigFile::Json* const labels = file.Find("id2label");
  config.classes = labels == nullptr ? 2 : static_cast<int64_t>(labels->size());
  config.epsilon = file.Number("layer_norm_eps", 1e-12);
  config.dropout = file.Number("hidden_dropout_prob", 0.0);
  file.Expect("attention_probs_dropout_prob", 0.0, 0.0);
  file.Expect("hidden_act", "gelu", "gelu");
  file.Expect("qkv_bias", true, true);
  if (config.channels % config.heads != 0) {
    file.AddProblem("num_attention_heads: got {}, expected a divisor of hidden_size {}",
                    config.heads, config.channels);
  }
  if (config.image_size % config.patch_size != 0) {
    file.AddProblem("patch_size: got {}, expected a divisor of image_size {}", config.patch_size,
                    config.image_size);
  }
  ZG_RETURN_IF_ERROR(file.status());
  return config;
}

std::string VitConfigAsJson(const VitConfig& config) {
  nlohmann::ordered_json json;
  json["architectures"] = {"ViTForImageClassification"};
  json["model_type"] = "vit";
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["hidden_size"] = config.channels;
  json["intermediate_size"] = config.hidden;
  json["image_size"] = config.image_size;
  json["patch_size"] = config.patch_size;
  json["num_channels"] = config.image_channels;
  for (int64_t i = 0; i < config.classes; ++i) {
    json["id2label"][fmt::to_string(i)] = fmt::format("LABEL_{}", i);
    json["label2id"][fmt::format("LABEL_{}", i)] = i;
  }
  json["layer_norm_eps"] = config.epsilon;
  json["hidden_dropout_prob"] = config.dropout;
  json["hidden_act"] = "gelu";
  json["torch_dtype"] = "float32";
  return json.dump(2) + "\n";
}

}  // namespace zg::models
