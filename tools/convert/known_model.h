// KnownModel: a model of transformers that one of ours is: which tensors its files have, and under
// which names and in which layout ours has them. Adding a model is adding a line to the table in
// known_model.cc, once there is a reader of its config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg::convert_tool {

struct KnownTensor {
  std::string ours;
  // Names that it may have in their files: the one that they write now, those of older versions, and
  // those of copies that a file may hold beside it, of the same bytes.
  std::vector<std::string> theirs;
  std::vector<int64_t> shape;  // ours
  bool is_transposed = false;  // theirs has the two dims in the other order
};

struct KnownModel {
  std::string type;    // model_type of config.json
  std::string config;  // the text of config.json
  std::vector<KnownTensor> tensors;
  // Patterns of names in their files that ours has nothing for and does not need: heads of other
  // tasks, constants.
  std::vector<std::string_view> unused;
};

// As DIRECTORY/config.json describes it. Error: every field that our model has nothing for; a model
// of another type.
StatusOr<KnownModel> ReadKnownModel(const std::string& directory);

// Of sizes that our programs know by name, such as "llama/mini". Error: there is no such name.
StatusOr<KnownModel> KnownModelOfPreset(const std::string& preset);

}  // namespace zg::convert_tool
