// The config.json of transformers' BERT, whose weights model.h reads as they are.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "models/bert/model.h"

namespace zg::models {

// Of DIRECTORY/config.json. Error: all fields that our model has nothing for. Their embedding takes
// no gradient of the token pad_token_id; nor does ours where it is only padding behind a mask.
StatusOr<BertConfig> ReadBertConfig(const std::string& directory);

// What transformers needs to load a model of ours.
std::string BertConfigAsJson(const BertConfig& config);

}  // namespace zg::models
