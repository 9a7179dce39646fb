// The files that a tool reads must not be those that it writes.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg::command {

// Error: `target`, a file or a directory that would be replaced, is one of the inputs, holds one, or is in
// one that is a directory. Empty names are none.
Status CheckIsNoInput(const std::string& target, const std::vector<std::string>& inputs);

}  // namespace zg::command
