// The files of this repository, for tests that read them. For tests with tests/lint/BUILD.bazel among
// their data, outside of the sandbox.
#pragma once

#include <functional>
#include <string>

namespace zg::testing {

// `path` is relative to the root of the repository.
using FileVisitor = std::function<void(const std::string& path, const std::string& text)>;

// Visits the .cc, .h and .cu files under framework, zero, models and tools; returns how many there
// are.
int ForEachSource(const FileVisitor& visit);

// Visits the .md files, wherever they are but for third_party; returns how many there are.
int ForEachDocument(const FileVisitor& visit);

// Visits whatever is written in a programming language, wherever it is but for third_party; returns
// how many files there are.
int ForEachProgramFile(const FileVisitor& visit);

}  // namespace zg::testing
