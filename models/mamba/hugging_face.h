// The config.json of transformers' Mamba, whose weights model.h reads unchanged.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "models/mamba/model.h"

namespace zg::models {

// Reads DIRECTORY/config.json. Error: all fields that our model does not support.
StatusOr<MambaConfig> ReadMambaConfig(const std::string& directory);

// The text that transformers needs to load a model of ours.
std::string MambaConfigAsJson(const MambaConfig& config);

}  // namespace zg::models
