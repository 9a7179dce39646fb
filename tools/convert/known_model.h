// KnownModel: a transformers model that one of our models implements: the tensors of its files, and
// the names and layouts that ours has for them. To add a model, add a line to the table in
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
  // The names that it may have in their files: the current one, those of older versions, and those
  // of equal copies that a file may hold beside it.
  std::vector<std::string> theirs;
  std::vector<int64_t> shape;  // ours
  bool is_transposed = false;  // in theirs the two dims are swapped
  // Theirs is a part of ours, whose shape is `whole`: the elements from `begin` on. The parts of a
  // tensor follow each other. Empty: it is all of it.
  std::vector<int64_t> whole = {};
  int64_t begin = 0;
};

struct KnownModel {
  std::string type;    // model_type of config.json
  std::string config;  // the text of config.json
  std::vector<KnownTensor> tensors;
  // Patterns of names in their files that ours lacks and does not need: heads of other tasks,
  // constants.
  std::vector<std::string_view> unused;
};

// Reads the model from DIRECTORY/config.json. Error: every field that our model does not support; a
// model of another type.
StatusOr<KnownModel> ReadKnownModel(const std::string& directory);

// The model of a size that our programs know by name, such as "llama/mini". Error: there is no such
// name.
StatusOr<KnownModel> KnownModelOfPreset(const std::string& preset);

}  // namespace zg::convert_tool
