// CheckedIndex: the index of a module in a list of modules.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zg::nn {

class Module;

// Ends the process with an error that names the list unless 0 <= i < size.
size_t CheckedIndex(const Module& list, int64_t i, int64_t size);

}  // namespace zg::nn
