#include "tests/fuzz/input_file.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "framework/base/check.h"

namespace zg {

InputFile::InputFile(const uint8_t* data, size_t size)
    : file_(memfd_create("fuzz_input", MFD_CLOEXEC)),
      path_(fmt::format("/proc/self/fd/{}", file_)) {
  ZG_CHECK(file_ >= 0, "cannot make a file in memory");
  while (size > 0) {
    const ssize_t written = write(file_, data, size);
    ZG_CHECK(written > 0, "cannot write a file in memory");
    data += written;
    size -= static_cast<size_t>(written);
  }
}

InputFile::~InputFile() { close(file_); }

}  // namespace zg
