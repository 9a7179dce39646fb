#include "models/bert/hugging_face.h"

#include "models/hugging_face/config_file.h"

namespace zg::models {

StatusOr<BertConfig> ReadBertConfig(const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(ConfigFile file, ConfigFile::Open(directory));
  file.Expect("model_type", nullptr, "bert");
  BertConfig config;
  config.layers = file.Size("num_hidden_layers", 12, ConfigFile::kMostLayers);
  config.heads = file.Size("num_attention_heads", 12);
  config.channels = file.Size("hidden_size", 768);
  config.hidden = file.Size("intermediate_size", 3072);
  config.context = file.Size("max_position_embeddings", 512);
  config.vocabulary = file.Size("vocab_size", 30522);
  config.token_types = file.Size("type_vocab_size", 2);
  config.epsilon = file.Number("layer_norm_eps", 1e-12);
  config.dropout = file.Number("hidden_dropout_prob", 0.1);
  config.attention_dropout = file.Number("attention_probs_dropout_prob", 0.1);
  file.Expect("hidden_act", "gelu", "gelu");
  file.Expect("position_embedding_type", "absolute", "absolute");
  file.Expect("is_decoder", false, false);
  file.Expect("add_cross_attention", false, false);
  file.Expect("tie_word_embeddings", true, true);
  if (config.channels % config.heads != 0) {
    file.AddProblem("num_attention_heads: got {}, expected a divisor of hidden_size {}",
                    config.heads, config.channels);
  }
  for (const auto& [key, value] :
       {std::pair("hidden_dropout_prob", config.dropout),
        std::pair("attention_probs_dropout_prob", config.attention_dropout)}) {
    if (value >= 1.0) file.AddProblem("{}: got {}, expected less than 1", key, value);
  }
  ZG_RETURN_IF_ERROR(file.status());
  return config;
}

std::string BertConfigAsJson(const BertConfig& config) {
  nlohmann::ordered_json json;
  json["architectures"] = {"BertForMaskedLM"};
  json["model_type"] = "bert";
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["hidden_size"] = config.channels;
  json["intermediate_size"] = config.hidden;
  json["max_position_embeddings"] = config.context;
  json["vocab_size"] = config.vocabulary;
  json["type_vocab_size"] = config.token_types;
  json["layer_norm_eps"] = config.epsilon;
  json["hidden_dropout_prob"] = config.dropout;
  json["attention_probs_dropout_prob"] = config.attention_dropout;
  json["hidden_act"] = "gelu";
  json["pad_token_id"] = nullptr;
  json["torch_dtype"] = "float32";
  return json.dump(2) + "\n";
}

}  // namespace zg::models
