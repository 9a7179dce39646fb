// Sizes of known Mambas by name.
#pragma once

#include <array>
#include <string_view>

#include "models/mamba/model.h"

namespace zg::models {

struct MambaPreset {
  std::string_view name;
  MambaConfig config;
};

// Those but the first have the sizes of the config.json of mamba-130m-hf and its siblings.
inline const std::array<MambaPreset, 4>& MambaPresets() {
  static const std::array<MambaPreset, 4> presets = {{
      {"mini", {}},
      {"mamba-130m", {24, 768, 1536, 16, 4, 48, 50280}},
      {"mamba-370m", {48, 1024, 2048, 16, 4, 64, 50280}},
      {"mamba-1.4b", {48, 2048, 4096, 16, 4, 128, 50280}},
  }};
  return presets;
}

// Null if there is none of that name.
inline const MambaPreset* FindMambaPreset(std::string_view name) {
  for (const MambaPreset& preset : MambaPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace zg::models
