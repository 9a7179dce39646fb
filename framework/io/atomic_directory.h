// AtomicDirectory: a directory that appears under its name with all of its files, or not at all.
// Files are created in temporary_path(), beside it, which Commit renames. Without Commit it is
// removed.
#pragma once

#include <string>

#include "framework/base/status.h"

namespace zg {

class AtomicDirectory {
 public:
  static StatusOr<AtomicDirectory> Create(const std::string& path);

  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&&) = delete;
  ~AtomicDirectory();

  const std::string& temporary_path() const { return temporary_path_; }

  // Renames the directory; with `may_replace` it atomically replaces an older directory, which is
  // then removed with its contents. The files must be durable already. No more calls after it.
  Status Commit(bool may_replace);

 private:
  AtomicDirectory(std::string path, std::string temporary_path)
      : path_(std::move(path)), temporary_path_(std::move(temporary_path)) {}

  std::string path_;
  std::string temporary_path_;  // empty after a move
};

}  // namespace zg
