// ZG_CHECK: an invariant of the framework itself. A failure is a bug of the framework: it prints
// where and why, then aborts.
//
//   ZG_CHECK(index < size, "index {} of {}", index, size);
#pragma once

#include <fmt/core.h>

#include <string>

namespace zg::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

inline std::string CheckMessage() { return ""; }
template <typename... Args>
std::string CheckMessage(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}

}  // namespace zg::internal

#define ZG_CHECK(condition, ...)                                              \
  do {                                                                        \
    if (__builtin_expect(!(condition), 0)) {                                  \
      ::zg::internal::CheckFailed(__FILE__, __LINE__, #condition,             \
                                  ::zg::internal::CheckMessage(__VA_ARGS__)); \
    }                                                                         \
  } while (false)
