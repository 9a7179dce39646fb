#include "tools/checkpoint/target.h"

#include <algorithm>
#include <filesystem>

namespace zg::checkpoint_tool {
namespace {

namespace fs = std::filesystem;

Status Exists(const std::string& path) {
  return FailedPrecondition("{}: is there already; give --force to replace it, or another name",
                            path);
}

}  // namespace

Status CheckTargetFile(const std::string& path, bool may_replace) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return Status::Ok();
  if (!fs::is_regular_file(status)) {
    return FailedPrecondition("{}: is no regular file and cannot be replaced; give another name",
                              path);
  }
  return may_replace ? Status::Ok() : Exists(path);
}

Status CheckTargetDirectory(const std::string& path, const std::vector<std::string>& files,
                            bool may_replace) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return Status::Ok();
  if (!fs::is_directory(status)) {
    return FailedPrecondition("{}: is no directory and cannot be replaced; give another name",
                              path);
  }
  if (!may_replace) return Exists(path);
  for (const auto& item : fs::directory_iterator(path, error)) {
    const std::string name = item.path().filename().string();
    if (std::find(files.begin(), files.end(), name) != files.end()) continue;
    return FailedPrecondition(
        "{}: also holds {}, which --force would remove; give the name of a new directory", path,
        name);
  }
  if (!error) return Status::Ok();
  return FailedPrecondition("{}: cannot be read: {}", path, error.message());
}

}  // namespace zg::checkpoint_tool
