// The config.json of transformers' BERT, whose weights model.h reads unchanged.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "models/bert/model.h"

namespace zg::models {

// Reads DIRECTORY/config.json. Error: all fields that our model does not support. In transformers
// the embedding of the token pad_token_id gets no gradient; nor does ours if the token is only
// padding hidden by a mask.
StatusOr<BertConfig> ReadBertConfig(const std::string& directory);

// The text that transformers needs to load a model of ours.
std::string BertConfigAsJson(const BertConfig& config);

}  // namespace zg::models
