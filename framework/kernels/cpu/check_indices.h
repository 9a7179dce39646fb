// The check of an index of positions along a dim, before a kernel reads or writes there.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

// Error unless all are in [0, size): the first one that is not, in the name of the op.
Status CheckIndices(std::string_view op, const int64_t* index, int64_t count, int64_t size);

}  // namespace zg
