#include "models/bert/masking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace zg::models {
namespace {

constexpr int64_t kIgnored = -100;
constexpr float kMasked = 0.8f;
constexpr float kReplaced = 0.1f;

}  // namespace

int64_t Masking::guesses_per_row(int64_t context) const {
  return std::max<int64_t>(1, std::llround(fraction * static_cast<double>(context)));
}

void HideTokens(const Masking& masking, RandomKey key, uint64_t first_row, int64_t context,
                std::vector<int64_t>* tokens, std::vector<int64_t>* labels) {
  labels->assign(tokens->size(), kIgnored);
  std::vector<RandomBlock> random(context);
  std::vector<int64_t> order(context);
  const int64_t rows = static_cast<int64_t>(tokens->size()) / context;
  for (int64_t row = 0; row < rows; ++row) {
    const RandomKey row_key = FoldIn(key, first_row + row);
    for (int64_t i = 0; i < context; ++i) random[i] = RandomBits(row_key, i);
    // Selects those with the smallest random numbers, the same number in every row.
    std::iota(order.begin(), order.end(), 0);
    const auto end = order.begin() + std::min(context, masking.guesses_per_row(context));
    std::partial_sort(order.begin(), end, order.end(), [&](int64_t a, int64_t b) {
      return std::pair(random[a][0], a) < std::pair(random[b][0], b);
    });
    for (auto position = order.begin(); position != end; ++position) {
      int64_t& token = (*tokens)[row * context + *position];
      (*labels)[row * context + *position] = token;
      const float choice = Uniform01(random[*position][1]);
      if (choice < kMasked) {
        token = masking.mask_token;
      } else if (choice < kMasked + kReplaced) {
        const auto others = static_cast<uint64_t>(masking.vocabulary - 1);
        token = static_cast<int64_t>(random[*position][2] * others >> 32);
        if (token >= masking.mask_token) ++token;
      }
    }
  }
}

}  // namespace zg::models
