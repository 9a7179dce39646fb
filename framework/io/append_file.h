// AppendFile: a file that grows record by record. Once Append has returned, the operating system
// has the record, so it survives the end of the process, however it ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

class AppendFile {
 public:
  // Creates the file if it is missing, and locks it for this process until it is destroyed. Errors:
  // it cannot be created or written, another process has it open.
  static StatusOr<AppendFile> Open(const std::string& path);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  const std::string& path() const { return path_; }

  // Drops everything after the first `size_bytes` bytes.
  Status Truncate(int64_t size_bytes);
  Status Append(std::string_view record);

 private:
  AppendFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Status CannotWrite(int error) const;

  std::string path_;
  int file_;
};

}  // namespace zg
