#include "tests/lint/source_tree.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace zg::testing {
namespace {

namespace fs = std::filesystem;

fs::path Root() {
  // The runfile is a link into the tree.
  return fs::canonical("tests/lint/BUILD.bazel").parent_path().parent_path().parent_path();
}

// Directories of other projects, or outside of the tree; continuous integration is included.
bool IsLeftOut(const std::string& folder) {
  return folder == "third_party" || (folder[0] == '.' && folder != ".ci");
}

int ForEachFile(const fs::path& root, const fs::path& folder,
                const std::set<std::string>& extensions, const FileVisitor& visit) {
  int num_files = 0;
  for (auto entry = fs::recursive_directory_iterator(folder);
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory() && IsLeftOut(entry->path().filename().string())) {
      entry.disable_recursion_pending();
    }
    if (!entry->is_regular_file() || extensions.count(entry->path().extension().string()) == 0) {
      continue;
    }
    ++num_files;
    std::ifstream file(entry->path());
    std::ostringstream text;
    text << file.rdbuf();
    visit(entry->path().lexically_relative(root).string(), text.str());
  }
  return num_files;
}

}  // namespace

int ForEachSource(const FileVisitor& visit) {
  const fs::path root = Root();
  int num_files = 0;
  for (const char* folder : {"framework", "zero", "models", "tools"}) {
    num_files += ForEachFile(root, root / folder, {".cc", ".h", ".cu"}, visit);
  }
  return num_files;
}

int ForEachDocument(const FileVisitor& visit) {
  return ForEachFile(Root(), Root(), {".md"}, visit);
}

int ForEachProgramFile(const FileVisitor& visit) {
  return ForEachFile(Root(), Root(), {".cc", ".cu", ".h", ".cuh", ".py", ".sh", ".bzl"}, visit);
}

}  // namespace zg::testing
