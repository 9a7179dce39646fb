// The config.json of transformers' ViT, whose weights model.h reads unchanged.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "models/vit/model.h"

namespace zg::models {

// Reads DIRECTORY/config.json. Error: all fields that our model does not support.
StatusOr<VitConfig> ReadVitConfig(const std::string& directory);

// The text that transformers needs to load a model of ours.
std::string VitConfigAsJson(const VitConfig& config);

}  // namespace zg::models
