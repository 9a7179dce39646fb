// The tokens of a text that a masked language model has to guess, as in section 3.1 of BERT (arXiv
// 1810.04805).
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/random.h"

namespace zg::models {

struct Masking {
  int64_t vocabulary = 0;
  int64_t mask_token = 0;
  double fraction = 0.15;

  // For each row of `context` tokens, at least one.
  int64_t guesses_per_row(int64_t context) const;
};

// Selects this many tokens of each row of tokens (rows, context) at random. It replaces 80 % of
// them by the mask token, 10 % by a random one, and leaves 10 % unchanged. labels (rows, context)
// get the original tokens there, and -100 elsewhere. The choice for a token is a function of the
// key, its row number, counted from `first_row`, and its position.
void HideTokens(const Masking& masking, RandomKey key, uint64_t first_row, int64_t context,
                std::vector<int64_t>* tokens, std::vector<int64_t>* labels);

}  // namespace zg::models
