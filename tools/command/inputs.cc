#include "tools/command/inputs.h"

#include <algorithm>
#include <filesystem>

namespace zg::command {

Status CheckIsNoInput(const std::string& target, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(target, error)) return Status::Ok();
  const fs::path own = fs::weakly_canonical(target, error);
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    const fs::path read = fs::weakly_canonical(input, error);
    const auto [in_own, in_read] = std::mismatch(own.begin(), own.end(), read.begin(), read.end());
    if (in_own != own.end() && in_read != read.end()) continue;
    return FailedPrecondition("{}: {} is read, and cannot be replaced; give another name", target,
                              input);
  }
  return Status::Ok();
}

}  // namespace zg::command
