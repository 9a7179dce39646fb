// MappedFile: a whole file, read-only, as a range of memory. Pages are read on first use and shared
// by the processes of a host. The file must not shrink while it is mapped.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"

namespace zg {

class MappedFile {
 public:
  // Errors: the file is missing, unreadable or not a regular file. An empty file is fine.
  static StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const uint8_t* data() const { return data_; }  // page-aligned; null if the file is empty
  uint64_t size() const { return size_; }        // bytes

 private:
  MappedFile(std::string path, const uint8_t* data, uint64_t size);

  std::string path_;
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
};

// MappedWindow: bytes [data, data + bytes) of a mapped file, mapped a second time, for reading a
// large file piece by piece. Pages read through it leave this process's memory when it is
// destroyed; pages read through the MappedFile stay until that is destroyed.
class MappedWindow {
 public:
  MappedWindow(const uint8_t* data, uint64_t bytes);
  MappedWindow(const MappedWindow&) = delete;
  ~MappedWindow();

  const uint8_t* data() const { return data_; }

 private:
  const uint8_t* data_ = nullptr;
  void* pages_ = nullptr;  // null: data_ is the file's own mapping, because the system allows no
                           // other
  uint64_t page_bytes_ = 0;
};

}  // namespace zg
