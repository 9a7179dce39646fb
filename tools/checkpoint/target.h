// The destination of a command: a name that is free, or that may be replaced.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg::checkpoint_tool {

// Errors: `path` exists and may not be replaced; it is not a regular file.
Status CheckTargetFile(const std::string& path, bool may_replace);

// The same for a directory that gets `files` and nothing else. Further error: an existing one has
// other files, which would be lost.
Status CheckTargetDirectory(const std::string& path, const std::vector<std::string>& files,
                            bool may_replace);

}  // namespace zg::checkpoint_tool
