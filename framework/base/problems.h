// Problems: all that is wrong with something, reported together.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"

namespace zg {

class Problems {
 public:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    items_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // Ok if there are none. "PATH: WHAT:", then one line for each, but no more than fit on a screen.
  Status AsStatus(std::string_view path, std::string_view what, std::string_view hint) const {
    if (items_.empty()) return Status::Ok();
    constexpr size_t kShown = 20;
    std::string text;
    for (size_t i = 0; i < std::min(items_.size(), kShown); ++i) text += "\n  " + items_[i];
    if (items_.size() > kShown) text += fmt::format("\n  and {} more", items_.size() - kShown);
    return InvalidArgument("{}: {}:{}\n  hint: {}", path, what, text, hint);
  }

 private:
  std::vector<std::string> items_;
};

}  // namespace zg
