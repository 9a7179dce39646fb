// CheckpointReader: one checkpoint, opened and checked; nothing of its data is copied.
//
//   ZG_ASSIGN_OR_RETURN(CheckpointReader checkpoint, CheckpointReader::Open("runs/gpt"));
//   for (const auto& [name, tensor] : checkpoint.tensors()) ...
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/checkpoint_checksums.h"
#include "framework/io/safetensors.h"
#include "framework/io/train_state.h"

namespace zg {

// The directory of the checkpoint that `path` refers to: itself, or the one that its `latest`
// names. Errors: neither; `latest` names something that does not exist.
StatusOr<std::string> FindCheckpoint(const std::string& path);

class CheckpointReader {
 public:
  struct Tensor {
    const SafetensorsEntry* entry = nullptr;
    const uint8_t* data = nullptr;
    std::string_view file;  // the shard's name
    bool is_optimizer_state = false;
  };

  // `path` as in FindCheckpoint. Checks everything but the data of the tensors: the small files
  // against their checksums, the shards' sizes and headers, the indexes against the shards. Errors
  // name the file.
  static StatusOr<CheckpointReader> Open(const std::string& path);

  const std::string& directory() const { return directory_; }
  const TrainState& state() const { return state_; }
  const Checksums& checksums() const { return checksums_; }
  // Parameters and optimizer state, by name.
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

  // Checks every `stride`-th shard, from the one with index `first` on, against its checksum, so
  // that `stride` ranks share the work.
  Status CheckData(int first = 0, int stride = 1) const;

 private:
  CheckpointReader() = default;
  Status OpenPart(std::string_view part);
  Status CheckSmallFile(const std::string& name) const;
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
  TrainState state_;
  Checksums checksums_;
  std::vector<std::string> shard_names_;
  std::vector<SafetensorsFile> shards_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace zg
