#include <filesystem>

#include "tools/tokenizer/commands.h"

namespace zg::tokenizer_tool {

Status CheckTarget(const std::string& path, bool may_replace) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty() || !fs::exists(status)) return Status::Ok();
  if (!fs::is_regular_file(status)) return InvalidArgument("{}: is not a regular file", path);
  if (may_replace) return Status::Ok();
  return InvalidArgument("{}: is there already; give --force to replace it", path);
}

}  // namespace zg::tokenizer_tool
