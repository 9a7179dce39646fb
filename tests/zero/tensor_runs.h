// The placement of the test models along a mesh axis whose ranks share micro-batches.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/tensor_rules.h"
#include "tests/zero/training.h"

namespace zg::testing {

// Rows of the embeddings and the head: the loss is computed from logits that stay split by classes.
inline const std::vector<PlacementRule> kGptVocabulary = {{"token_embedding", "tensor", Sbp::S(0)}};
inline const std::vector<PlacementRule> kLlamaVocabulary = {
    {"model.embed_tokens", "tensor", Sbp::S(0)}, {"lm_head", "tensor", Sbp::S(0)}};

// The residual stream, and with it norms and dropouts, by parts of the sequence.
inline PlacementRule ResultsOf(std::string module) {
  return {std::move(module), "tensor", Sbp::S(1), PlacementRule::Of::kResults};
}
inline const std::vector<PlacementRule> kGptSequence = {
    ResultsOf("token_embedding"), ResultsOf("blocks.*.attention"), ResultsOf("blocks.*.mlp")};
inline const std::vector<PlacementRule> kLlamaSequence = {ResultsOf("model.embed_tokens")};

inline RunConfig On(std::vector<MeshAxis> mesh, TestModel model = TestModel::kGpt) {
  RunConfig config;
  config.model = model;
  config.micro_batches = 4;
  config.mesh = std::move(mesh);
  config.ranks = Mesh(config.mesh).num_ranks();
  if (Mesh(config.mesh).FindAxis("tensor") < 0) return config;
  config.placement = IsLlama(model) ? LlamaTensorRules() : GptTensorRules();
  return config;
}

inline void AddRules(const std::vector<PlacementRule>& rules, RunConfig* config) {
  if (config->placement.empty()) return;
  config->placement.insert(config->placement.end(), rules.begin(), rules.end());
}

// Besides heads and columns also the vocabulary and the sequence.
inline void AddRulesForAll(RunConfig* config) {
  const bool is_llama = IsLlama(config->model);
  AddRules(is_llama ? kLlamaVocabulary : kGptVocabulary, config);
  AddRules(is_llama ? kLlamaSequence : kGptSequence, config);
}

}  // namespace zg::testing
