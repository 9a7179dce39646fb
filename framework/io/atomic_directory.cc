#include "framework/io/atomic_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "framework/io/durable_file.h"

namespace zg {
namespace {

// Without trailing slashes, so that a sibling's name can be made from it.
std::string Trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

StatusOr<AtomicDirectory> AtomicDirectory::Create(const std::string& path) {
  const std::string trimmed = Trimmed(path);
  for (int attempt = 0;; ++attempt) {
    std::string temporary_path = fmt::format("{}.tmp-{}-{}", trimmed, getpid(), attempt);
    if (mkdir(temporary_path.c_str(), 0777) == 0) {
      return AtomicDirectory(trimmed, std::move(temporary_path));
    }
    if (errno != EEXIST || attempt == 1000) {
      return FailedPrecondition("{}: cannot be created: {}", trimmed, std::strerror(errno));
    }
  }
}

AtomicDirectory::AtomicDirectory(AtomicDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, std::string())) {}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;  // after Commit there may be nothing left
  if (!temporary_path_.empty()) std::filesystem::remove_all(temporary_path_, ignored);
}

Status AtomicDirectory::Commit(bool may_replace) {
  ZG_RETURN_IF_ERROR(SyncDirectory(temporary_path_));
  std::error_code error;
  // A plain rename replaces only an empty directory. After an exchange the older directory has the
  // temporary name, and the destructor removes it.
  const bool is_exchange = may_replace && std::filesystem::is_directory(path_, error);
  const int result = is_exchange ? renameat2(AT_FDCWD, temporary_path_.c_str(), AT_FDCWD,
                                             path_.c_str(), RENAME_EXCHANGE)
                                 : rename(temporary_path_.c_str(), path_.c_str());
  if (result != 0) {
    return FailedPrecondition("{}: cannot be renamed to {}: {}", temporary_path_, path_,
                              std::strerror(errno));
  }
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  return SyncDirectory(parent.empty() ? "." : parent);
}

}  // namespace zg
