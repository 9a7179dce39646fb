// Replays inputs through a fuzz target, with any compiler, so that fixed findings stay fixed.
// Usage: PROGRAM FILE_OR_DIRECTORY...
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

bool Replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) return false;
  std::printf("%s: %zu bytes\n", path.c_str(), bytes.size());
  std::fflush(stdout);  // the last line names an input that ends the program
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  int num_inputs = 0;
  for (int i = 1; i < argc; ++i) {
    std::vector<std::filesystem::path> paths = {argv[i]};
    if (std::filesystem::is_directory(argv[i])) {
      paths.clear();
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        paths.push_back(entry.path());
      }
    }
    for (const std::filesystem::path& path : paths) {
      if (!Replay(path)) {
        std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
        return 1;
      }
      ++num_inputs;
    }
  }
  if (num_inputs > 0) return 0;
  std::fprintf(stderr, "no inputs: expected files or directories that hold some\n");
  return 1;
}
