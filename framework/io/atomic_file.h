// AtomicFile: a file that appears under its name complete, or not at all. Bytes go to a temporary
// file in the same directory; Commit makes them durable and renames it. Without Commit it is
// removed. Symbolic links stay: the file that they lead to is replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

class AtomicFile {
 public:
  // Errors: something else than a regular file has the name; the directory cannot be written.
  static StatusOr<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  const std::string& path() const { return path_; }  // behind symbolic links

  Status Write(const void* data, size_t size_bytes);
  // Overwrites bytes that were written before.
  Status Rewrite(uint64_t offset_bytes, const void* data, size_t size_bytes);

  // Syncs the bytes, replaces `path`, syncs the directory. No more calls after it.
  Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int file);

  Status CannotWrite(int error) const;

  std::string path_;
  std::string temporary_path_;
  int file_;  // -1 after Commit or a move
};

Status WriteFileAtomically(const std::string& path, std::string_view text);

}  // namespace zg
