#include "models/text/default_text.h"

#include <filesystem>

namespace zg::models {

namespace fs = std::filesystem;

std::vector<std::string> DefaultData(const std::string& prose_directory) {
  std::error_code error;
  if (!fs::is_directory(prose_directory, error)) return {};
  return {prose_directory};
}

std::string SourceText() {
  std::error_code error;
  return (fs::read_symlink("/proc/self/exe", error).parent_path() / "corpus.txt").string();
}

}  // namespace zg::models
