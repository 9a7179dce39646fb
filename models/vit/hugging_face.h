// The config.json of transformers' ViT, whose weights model.h reads as they are.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "models/vit/model.h"

namespace zg::models {

// Of DIRECTORY/config.json. Error: all fields that our model has nothing for.
StatusOr<VitConfig> ReadVitConfig(const std::string& directory);

// What transformers needs to load a model of ours.
std::string VitConfigAsJson(const VitConfig& config);

}  // namespace zg::models
