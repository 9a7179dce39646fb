#include "tests/lint/source_tree.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace zg::testing {

namespace fs = std::filesystem;

int ForEachSource(
    const std::function<void(const std::string& path, const std::string& text)>& visit) {
  // The runfile is a link into the tree.
  const fs::path root =
      fs::canonical("tests/lint/BUILD.bazel").parent_path().parent_path().parent_path();
  int num_files = 0;
  for (const char* folder : {"framework", "zero", "models", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cc" && extension != ".h" && extension != ".cu") continue;
      ++num_files;
      std::ifstream file(entry.path());
      std::ostringstream text;
      text << file.rdbuf();
      visit(entry.path().lexically_relative(root).string(), text.str());
    }
  }
  return num_files;
}

}  // namespace zg::testing
