#include "framework/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace zg {
namespace {

// What a rename replaces: the file that symbolic links lead to, or will lead to.
StatusOr<std::string> TargetOf(const std::string& path) {
  if (path.empty()) return InvalidArgument("got the path \"\", expected that of a file");
  std::error_code error;
  std::filesystem::path target = path;
  constexpr int kMaxLinks = 40;  // as of Linux
  for (int i = 0; std::filesystem::is_symlink(target, error); ++i) {
    if (i == kMaxLinks) return FailedPrecondition("{}: cannot be created: too many links", path);
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) return FailedPrecondition("{}: cannot be read: {}", path, error.message());
    target = target.parent_path() / next;
  }
  const std::filesystem::file_status status = std::filesystem::status(target, error);
  const bool is_other =
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (!is_other) return target.string();
  return InvalidArgument("{}: got a {}, which would be replaced; expected the name of a file", path,
                         std::filesystem::is_directory(status) ? "directory" : "device or pipe");
}

}  // namespace

StatusOr<AtomicFile> AtomicFile::Create(const std::string& given_path) {
  ZG_ASSIGN_OR_RETURN(const std::string path, TargetOf(given_path));
  // The process id separates writers on one host; O_EXCL separates those of several hosts, and
  // left-over files.
  std::string temporary_path;
  int file = -1;
  for (int attempt = 0; file < 0; ++attempt) {
    temporary_path = fmt::format("{}.tmp-{}-{}", path, getpid(), attempt);
    file = open(temporary_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && (errno != EEXIST || attempt == 1000)) {
      return FailedPrecondition("{}: cannot be created: {}", path, std::strerror(errno));
    }
  }
  return AtomicFile(path, std::move(temporary_path), file);
}

AtomicFile::AtomicFile(std::string path, std::string temporary_path, int file)
    : path_(std::move(path)), temporary_path_(std::move(temporary_path)), file_(file) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      file_(std::exchange(other.file_, -1)) {}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(temporary_path_.c_str());
}

Status AtomicFile::CannotWrite(int error) const {
  return FailedPrecondition("{}: cannot be written: {}", path_, std::strerror(error));
}

Status AtomicFile::Write(const void* data, size_t size_bytes) {
  const char* rest = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t written = write(file_, rest, size_bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return CannotWrite(errno);
    rest += written;
    size_bytes -= static_cast<size_t>(written);
  }
  return Status::Ok();
}

Status AtomicFile::Rewrite(uint64_t offset_bytes, const void* data, size_t size_bytes) {
  const auto offset = static_cast<off_t>(offset_bytes);
  if (lseek(file_, offset, SEEK_SET) != offset) return CannotWrite(errno);
  ZG_RETURN_IF_ERROR(Write(data, size_bytes));
  return lseek(file_, 0, SEEK_END) >= 0 ? Status::Ok() : CannotWrite(errno);
}

Status AtomicFile::Commit() {
  if (fsync(file_) != 0) return CannotWrite(errno);
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) return CannotWrite(errno);
  // From here on the new file is in place; it remains to make its name durable.
  const int close_error = close(std::exchange(file_, -1)) == 0 ? 0 : errno;
  if (close_error != 0) return CannotWrite(close_error);
  std::string directory = std::filesystem::path(path_).parent_path().string();
  if (directory.empty()) directory = ".";
  const int directory_file = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_file < 0) return CannotWrite(errno);
  // EINVAL: a file system that does not sync directories.
  const int sync_error = fsync(directory_file) == 0 || errno == EINVAL ? 0 : errno;
  close(directory_file);
  return sync_error == 0 ? Status::Ok() : CannotWrite(sync_error);
}

Status WriteFileAtomically(const std::string& path, std::string_view text) {
  ZG_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ZG_RETURN_IF_ERROR(file.Write(text.data(), text.size()));
  return file.Commit();
}

}  // namespace zg
