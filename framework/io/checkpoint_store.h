// CheckpointStore: the directory that one job saves its checkpoints into. A checkpoint is made
// under a temporary name and appears under its own whole, or not at all; `latest` follows.
//
//   ZG_ASSIGN_OR_RETURN(CheckpointStore store, CheckpointStore::Open("runs/gpt"));
//   ZG_ASSIGN_OR_RETURN(std::string directory, store.Begin(100));
//   ... write and sync the files in `directory` ...
//   ZG_RETURN_IF_ERROR(store.Publish(100));
//
// One process of a job has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/status.h"

namespace zg {

class CheckpointStore {
 public:
  // Creates the directory where it is missing, locks it for this process until the store is
  // destroyed, and removes what killed saves have left. Errors: it cannot be made or written,
  // another job saves into it.
  static StatusOr<CheckpointStore> Open(const std::string& directory);

  CheckpointStore(CheckpointStore&& other) noexcept;
  CheckpointStore& operator=(CheckpointStore&& other) noexcept;
  ~CheckpointStore();

  const std::string& directory() const { return directory_; }

  // A new, empty directory for the files of a step's checkpoint, under its temporary name.
  StatusOr<std::string> Begin(int64_t step);

  // Gives it its name, at once in the place of an older one of this step, and lets `latest` name
  // it.
  Status Publish(int64_t step);

  // Removes what Begin made, after an error.
  void Discard(int64_t step);

  // Removes older checkpoints, so that `keep` are left up to and including that of `step`; those of
  // later steps, which another run has left, stay.
  Status RemoveOlder(int64_t step, int keep);

 private:
  CheckpointStore(std::string directory, int lock)
      : directory_(std::move(directory)), lock_(lock) {}
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  Status RemoveLeftovers();

  std::string directory_;
  int lock_ = -1;  // the open directory
};

// What `latest` in the directory names; nothing when there is none that can be read.
std::optional<std::string> LatestCheckpoint(const std::string& directory);

}  // namespace zg
