#include "models/gpt/validation_rounds.h"

#include <algorithm>

namespace zg::models {

StatusOr<int64_t> ValidationRounds(const TokenDataset& data, int64_t context, int64_t rows,
                                   int64_t windows) {
  const auto available = static_cast<int64_t>(data.num_windows(static_cast<int>(context)));
  if (available < rows) {
    return InvalidArgument(
        "--data: {}: {} validation contexts of {} tokens, expected at least {} (--batch times the "
        "ranks); give more data, a smaller --batch or a smaller --context",
        data.name(), available, context, rows);
  }
  return std::max<int64_t>(1, std::min(windows, available) / rows);
}

}  // namespace zg::models
