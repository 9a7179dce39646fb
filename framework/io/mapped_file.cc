#include "framework/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace zg {
namespace {

Status CannotRead(const std::string& path, int error) {
  if (error == ENOENT) return NotFound("{}: no such file", path);
  return FailedPrecondition("{}: cannot be read: {}", path, std::strerror(error));
}

}  // namespace

StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return CannotRead(path, errno);
  struct stat info;
  if (fstat(file, &info) != 0) {
    const int error = errno;
    close(file);
    return CannotRead(path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    close(file);
    return InvalidArgument("{}: got a {}, expected a regular file", path,
                           S_ISDIR(info.st_mode) ? "directory" : "device or pipe");
  }
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (size == 0) {
    char first;  // what the kernel makes, such as /proc/cpuinfo, has no size and yet bytes
    const ssize_t count = read(file, &first, 1);
    const int error = errno;
    close(file);
    if (count < 0) return CannotRead(path, error);
    if (count == 0) return MappedFile(path, nullptr, 0);
    return InvalidArgument("{}: got a file that does not tell its size, expected a copy of it",
                           path);
  }
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  const int error = errno;
  close(file);
  if (data == MAP_FAILED) return CannotRead(path, error);
  return MappedFile(path, static_cast<const uint8_t*>(data), size);
}

MappedFile::MappedFile(std::string path, const uint8_t* data, uint64_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

MappedWindow::MappedWindow(const uint8_t* data, uint64_t bytes) : data_(data) {
  static const uint64_t page_size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t before = reinterpret_cast<uintptr_t>(data) % page_size;
  page_bytes_ = before + bytes;
#ifdef __SANITIZE_THREAD__
  return;  // it does not know of mremap, and takes addresses that are used again for a race
#endif
  // A size of 0 asks for a second mapping of the same pages; only shared mappings have one.
  void* const pages = mremap(const_cast<uint8_t*>(data) - before, 0, page_bytes_, MREMAP_MAYMOVE);
  if (pages == MAP_FAILED) return;
  pages_ = pages;
  data_ = static_cast<const uint8_t*>(pages) + before;
}

MappedWindow::~MappedWindow() {
  if (pages_ != nullptr) munmap(pages_, page_bytes_);
}

}  // namespace zg
