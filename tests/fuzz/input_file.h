// InputFile: a fuzzer's input as a file, for readers that open files. It is in memory and
// disappears with the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace zg {

class InputFile {
 public:
  InputFile(const uint8_t* data, size_t size);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int file_;
  std::string path_;
};

}  // namespace zg
