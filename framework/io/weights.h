// Weights: the tensors of a model by name, wherever they are stored; opened and checked, without
// copying their data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/checkpoint_reader.h"
#include "framework/io/safetensors.h"

namespace zg {

class Weights {
 public:
  struct Tensor {
    const SafetensorsEntry* entry = nullptr;
    const uint8_t* data = nullptr;
    bool is_optimizer_state = false;
  };

  // `path` is one of
  //   a safetensors file;
  //   the index of several, NAME.safetensors.index.json;
  //   a directory with model.safetensors or model.safetensors.index.json, as Hugging Face's;
  //   a checkpoint of ours, or a directory with `latest`; every byte is checked.
  // Errors name the file, and together all tensors on which an index and its files do not agree.
  static StatusOr<Weights> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // The directory of the files.
  const std::string& directory() const { return directory_; }
  // The paths of what was read: of files, or of a whole checkpoint.
  std::vector<std::string> inputs() const;
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
  // Set for a checkpoint of ours; null otherwise.
  const TrainState* state() const { return checkpoint_ ? &checkpoint_->state() : nullptr; }

 private:
  Status OpenCheckpoint();
  Status OpenFile(const std::string& path);
  Status OpenIndex(const std::string& path);

  std::string path_;
  std::string directory_;
  std::string index_;  // the path of an index; empty: there is none
  std::vector<SafetensorsFile> files_;
  std::optional<CheckpointReader> checkpoint_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace zg
