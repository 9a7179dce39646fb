#include "framework/io/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace zg {

StatusOr<DurableFile> DurableFile::Create(const std::string& path, uint64_t bytes) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return FailedPrecondition("{}: cannot be created: {}", path, std::strerror(errno));
  }
  DurableFile file(path, descriptor);
  // A full disk is reported now and not after half of the bytes.
  if (bytes > 0) {
    const int error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
    if (error != 0) {
      return FailedPrecondition("{}: {} bytes cannot be reserved: {}", path, bytes,
                                std::strerror(error));
    }
  }
  return file;
}

StatusOr<DurableFile> DurableFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor >= 0) return DurableFile(path, descriptor);
  return FailedPrecondition(
      "{}: cannot be opened for writing: {}{}", path, std::strerror(errno),
      errno == ENOENT ? "; the ranks must see one directory under this path" : "");
}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

DurableFile& DurableFile::operator=(DurableFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

DurableFile::~DurableFile() {
  if (file_ >= 0) close(file_);
}

Status DurableFile::CannotWrite(int error) const {
  return FailedPrecondition("{}: cannot be written: {}", path_, std::strerror(error));
}

Status DurableFile::WriteAt(uint64_t offset_bytes, const void* data, size_t size_bytes) {
  const char* rest = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t written = pwrite(file_, rest, size_bytes, static_cast<off_t>(offset_bytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return CannotWrite(errno);
    if (written == 0) return CannotWrite(ENOSPC);
    rest += written;
    offset_bytes += static_cast<uint64_t>(written);
    size_bytes -= static_cast<size_t>(written);
  }
  return Status::Ok();
}

Status DurableFile::Sync() { return fsync(file_) == 0 ? Status::Ok() : CannotWrite(errno); }

Status SyncDirectory(const std::string& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) {
    return FailedPrecondition("{}: cannot be opened: {}", path, std::strerror(errno));
  }
  // EINVAL: a file system that does not sync directories.
  const int error = fsync(directory) == 0 || errno == EINVAL ? 0 : errno;
  close(directory);
  if (error == 0) return Status::Ok();
  return FailedPrecondition("{}: cannot be written: {}", path, std::strerror(error));
}

}  // namespace zg
