// How a demo goes through its validation data: in rounds of a window per row of every rank.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/io/token_dataset.h"

namespace zg::models {

// Of at most `windows` windows of `context` tokens, as far as they fill rounds of `rows` (--batch times
// the ranks), but at least one round. Error: the data have not as many windows. To be asked before the
// training as well, so that it does not end with an error.
StatusOr<int64_t> ValidationRounds(const TokenDataset& data, int64_t context, int64_t rows,
                                   int64_t windows);

}  // namespace zg::models
