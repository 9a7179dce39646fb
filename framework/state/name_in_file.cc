#include "framework/state/name_in_file.h"

namespace zg {

NameInFile renaming(std::vector<std::pair<std::string, std::string>> replacements) {
  return [replacements = std::move(replacements)](const std::string& path) {
    std::string name = path;
    for (const auto& [from, to] : replacements) {
      if (from.empty()) continue;
      for (size_t at = name.find(from); at != std::string::npos;
           at = name.find(from, at + to.size())) {
        name.replace(at, from.size(), to);
      }
    }
    return name;
  };
}

}  // namespace zg
