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

// Visits all .md files, except in third_party; returns how many there are.
int ForEachDocument(const FileVisitor& visit);

// Visits all files in a programming language, except in third_party; returns how many there are.
int ForEachProgramFile(const FileVisitor& visit);

}  // namespace zg::testing
