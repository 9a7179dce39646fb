// CheckpointStore: the directory that one job saves its checkpoints into. A checkpoint is created
// under a temporary name and appears under its own name complete, or not at all; `latest` follows.
//
//   ZG_ASSIGN_OR_RETURN(CheckpointStore store, CheckpointStore::Open("runs/gpt"));
//   ZG_ASSIGN_OR_RETURN(std::string directory, store.Begin(100));
//   ... write and sync the files in `directory` ...
//   ZG_RETURN_IF_ERROR(store.Publish(100));
//
// Only one process of a job has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/status.h"

namespace zg {

class CheckpointStore {
 public:
  // Creates the directory if it is missing, locks it for this process until the store is destroyed,
  // and removes remains of killed saves. Errors: it cannot be created or written, another job saves
  // into it.
  static StatusOr<CheckpointStore> Open(const std::string& directory);

  CheckpointStore(CheckpointStore&& other) noexcept;
  CheckpointStore& operator=(CheckpointStore&& other) noexcept;
  ~CheckpointStore();

  const std::string& directory() const { return directory_; }

  // A new, empty directory for the files of a step's checkpoint, under its temporary name.
  StatusOr<std::string> Begin(int64_t step);

  // Renames it to its final name, atomically replacing an older checkpoint of this step, and
  // updates `latest`.
  Status Publish(int64_t step);

  // Removes the directory of Begin, after an error.
  void Discard(int64_t step);

  // Removes older checkpoints, so that `keep` are left up to and including that of `step`; those of
  // later steps, left by another run, stay.
  Status RemoveOlder(int64_t step, int keep);

 private:
  CheckpointStore(std::string directory, int lock)
      : directory_(std::move(directory)), lock_(lock) {}
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  Status RemoveLeftovers();

  std::string directory_;
  int lock_ = -1;  // the open directory
};

// The checkpoint that `latest` in the directory names; nothing if `latest` is missing or
// unreadable.
std::optional<std::string> LatestCheckpoint(const std::string& directory);

}  // namespace zg
