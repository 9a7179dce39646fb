#include "tests/io/test_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/base/check.h"

namespace zg {

std::string TestPath(std::string_view name) { return ::testing::TempDir() + std::string(name); }

std::string WriteTestFile(std::string_view name, std::string_view bytes) {
  const std::string path = TestPath(name);
  // Truncating it instead would flush the file to disk on some file systems, which is slow in a
  // loop.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  ZG_CHECK(file.good(), "cannot write {}", path);
  return path;
}

std::string ReadTestFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace zg
