// The C++ files of this repository, for tests that read them.
#pragma once

#include <functional>
#include <string>

namespace zg::testing {

// Visits the .cc, .h and .cu files under framework, zero, models and tools; `path` is relative to
// the root of the repository. For tests with tests/lint/BUILD.bazel among their data, outside of
// the sandbox. Returns how many there are.
int ForEachSource(
    const std::function<void(const std::string& path, const std::string& text)>& visit);

}  // namespace zg::testing
