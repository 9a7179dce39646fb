#include "tools/checkpoint/gpt2_config.h"

#include "framework/base/problems.h"
#include "framework/io/strict_json.h"

namespace zg::checkpoint_tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kEpsilon = 1e-5;
constexpr int64_t kEndOfText = 50256;  // of GPT-2's tokens

const char* TorchName(SafetensorsDType dtype) {
  if (dtype == SafetensorsDType::kBF16) return "bfloat16";
  return dtype == SafetensorsDType::kF16 ? "float16" : "float32";
}

}  // namespace

StatusOr<int64_t> HeadsOfGpt2Config(const std::string& path, const Gpt2Config& of_tensors) {
  ZG_ASSIGN_OR_RETURN(const nlohmann::json json, ReadStrictJson(path));
  Problems problems;
  // A missing key has the default of transformers.
  const auto expect = [&](const char* key, const Json& by_default, const Json& expected) {
    const Json got = json.contains(key) ? Json(json[key]) : by_default;
    if (got != expected) problems.Add("{}: got {}, expected {}", key, got.dump(), expected.dump());
  };
  expect("model_type", "gpt2", "gpt2");
  expect("n_layer", 12, of_tensors.layers);
  expect("n_embd", 768, of_tensors.channels);
  expect("n_positions", 1024, of_tensors.context);
  expect("vocab_size", 50257, of_tensors.vocabulary);
  expect("activation_function", "gelu_new", "gelu_new");
  expect("layer_norm_epsilon", kEpsilon, kEpsilon);
  expect("scale_attn_weights", true, true);
  expect("scale_attn_by_inverse_layer_idx", false, false);
  expect("add_cross_attention", false, false);
  expect("tie_word_embeddings", true, true);
  if (json.contains("n_inner") && !json["n_inner"].is_null()) {
    expect("n_inner", nullptr, 4 * of_tensors.channels);
  }
  int64_t heads = 12;
  if (json.contains("n_head")) {
    heads = json["n_head"].is_number_integer() ? json["n_head"].get<int64_t>() : 0;
  }
  if (heads < 1 || of_tensors.channels % heads != 0) {
    problems.Add("n_head: got {}, expected a divisor of n_embd {}",
                 json.contains("n_head") ? json["n_head"].dump() : "12 (by default)",
                 of_tensors.channels);
  }
  ZG_RETURN_IF_ERROR(problems.AsStatus(path, "is not of a model that ours can be",
                                       "only GPT-2 as published, of any size, is read"));
  return heads;
}

std::string Gpt2ConfigAsJson(const Gpt2Config& config) {
  Json json;
  json["architectures"] = {"GPT2LMHeadModel"};
  json["model_type"] = "gpt2";
  json["vocab_size"] = config.vocabulary;
  json["n_positions"] = config.context;
  json["n_ctx"] = config.context;
  json["n_embd"] = config.channels;
  json["n_layer"] = config.layers;
  json["n_head"] = config.heads;
  json["activation_function"] = "gelu_new";
  json["layer_norm_epsilon"] = kEpsilon;
  json["initializer_range"] = 0.02;
  json["resid_pdrop"] = config.dropout;
  json["embd_pdrop"] = config.dropout;
  json["attn_pdrop"] = 0.0;
  json["tie_word_embeddings"] = true;
  json["torch_dtype"] = TorchName(config.dtype);
  for (const char* token : {"bos_token_id", "eos_token_id"}) {
    json[token] = config.vocabulary > kEndOfText ? Json(kEndOfText) : Json(nullptr);
  }
  return json.dump(2) + "\n";
}

}  // namespace zg::checkpoint_tool
