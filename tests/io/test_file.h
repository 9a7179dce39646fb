// Files with given bytes, in the test's temporary directory.
#pragma once

#include <string>
#include <string_view>

namespace zg {

// Writes (or overwrites) the file `name` and returns its path.
std::string WriteTestFile(std::string_view name, std::string_view bytes);

// The path that `name` has in the temporary directory; nothing is created.
std::string TestPath(std::string_view name);

std::string ReadTestFile(const std::string& path);

}  // namespace zg
