// The text that the demo trains on by default.
#pragma once

#include <string>
#include <vector>

namespace zg::models {

// 11 MB of English about Python, from Debian's package python3.11-doc.
inline constexpr char kProseDirectory[] = "/usr/share/doc/python3.11/html/_sources";

// The default of the demo's data: `prose_directory`, or nothing if it is not installed. As a flag's
// default it is compared among ranks.
std::vector<std::string> DefaultData(const std::string& prose_directory = kProseDirectory);

// The text if neither is available: the project's own sources and documents, which the build puts
// beside the program.
std::string SourceText();

}  // namespace zg::models
