#include "framework/io/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace zg {

StatusOr<AppendFile> AppendFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return FailedPrecondition("{}: cannot be opened for writing: {}", path, std::strerror(errno));
  }
  AppendFile file(path, descriptor);
  // File systems without locks return other errors: there, nothing keeps two jobs apart.
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return FailedPrecondition("{}: another job writes it; give each job a directory of its own",
                              path);
  }
  return file;
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

AppendFile::~AppendFile() {
  if (file_ >= 0) close(file_);
}

Status AppendFile::CannotWrite(int error) const {
  return FailedPrecondition("{}: cannot be written: {}", path_, std::strerror(error));
}

Status AppendFile::Truncate(int64_t size_bytes) {
  return ftruncate(file_, size_bytes) == 0 ? Status::Ok() : CannotWrite(errno);
}

Status AppendFile::Append(std::string_view record) {
  while (!record.empty()) {
    const ssize_t written = write(file_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return CannotWrite(errno);
    record.remove_prefix(static_cast<size_t>(written));
  }
  return Status::Ok();
}

}  // namespace zg
