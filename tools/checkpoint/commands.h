// What //tools:checkpoint does with checkpoints, as text. `path` is a checkpoint's directory or one
// with `latest`, as for --resume.
#pragma once

#include <string>

#include "framework/base/status.h"

namespace zg::checkpoint_tool {

// Step, settings, and every tensor with its shape, bytes and file.
StatusOr<std::string> Inspect(const std::string& path);

// Checks the structure and every byte against its checksum; the text says what was checked.
StatusOr<std::string> Verify(const std::string& path);

struct Difference {
  bool is_same = false;  // step, settings and every bit of every tensor
  std::string text;
};

// Which tensors and settings of two checkpoints differ, and by how much. Damaged data is an error.
StatusOr<Difference> Diff(const std::string& path_a, const std::string& path_b);

}  // namespace zg::checkpoint_tool
