// FindFlagTexts: where strings and comments of C++ speak of command-line flags and of settings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zg::testing {

struct FlagText {
  int line = 0;
  std::string name;  // "--save-async", or of a quoted setting in a string "`save_async`"
};

std::vector<FlagText> FindFlagTexts(std::string_view source);

}  // namespace zg::testing
