// Whether a test is compiled with a sanitizer that makes it ten times as slow and large. Tests of many
// settings then run a sample.
#pragma once

#include <vector>

namespace zg::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasSanitizer = true;
#else
inline constexpr bool kHasSanitizer = false;
#endif

inline std::vector<int> AllOrSample(const std::vector<int>& all, const std::vector<int>& sample) {
  return kHasSanitizer ? sample : all;
}

}  // namespace zg::testing
