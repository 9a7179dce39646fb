// Suggestions for errors about a dim that does not divide into the parts along a mesh axis.
#pragma once

#include <cstdint>
#include <string>

namespace zg {

// Returns "the nearest sizes that do are 50256 and 50258, the nearest numbers of parts 1 and 29"
// for a dim of `size` in `groups` that `num_parts` parts do not divide.
std::string NearestThatDivide(int64_t size, int groups, int num_parts);

}  // namespace zg
