// DurableFile: a file of known size that several processes fill at the same time, each its own
// ranges. Its bytes are on the disk once every writer has called Sync.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "framework/base/status.h"

namespace zg {

class DurableFile {
 public:
  // Creates a file of `bytes` bytes, all reserved on the disk. Errors: it exists, no space, no
  // permission, ...
  static StatusOr<DurableFile> Create(const std::string& path, uint64_t bytes);
  // Opens a file that a process, perhaps another one, has created.
  static StatusOr<DurableFile> Open(const std::string& path);

  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&& other) noexcept;
  ~DurableFile();

  Status WriteAt(uint64_t offset_bytes, const void* data, size_t size_bytes);
  Status Sync();

 private:
  DurableFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Status CannotWrite(int error) const;

  std::string path_;
  int file_ = -1;
};

// Makes the names in a directory durable.
Status SyncDirectory(const std::string& path);

}  // namespace zg
