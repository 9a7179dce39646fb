// What would do where the ranks along a mesh axis cannot share a dim in equal parts, for errors.
#pragma once

#include <cstdint>
#include <string>

namespace zg {

// "the nearest sizes that do are 50256 and 50258, the nearest numbers of ranks 1 and 29", of a dim of
// `size` in `groups` and of `num_ranks` ranks, which do not divide it.
std::string NearestThatDivide(int64_t size, int groups, int num_ranks);

}  // namespace zg
