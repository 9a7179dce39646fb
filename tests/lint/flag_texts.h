// FindFlagTexts: finds command-line flags and settings in strings and comments of C++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zg::testing {

struct FlagText {
  int line = 0;
  std::string name;  // "--save-async", or for a quoted setting in a string "`save_async`"
};

std::vector<FlagText> FindFlagTexts(std::string_view source);

}  // namespace zg::testing
