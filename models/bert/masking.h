// Which tokens of a text a masked language model has to guess, as in section 3.1 of BERT (arXiv
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

  // Of each row of `context` tokens, at least one.
  int64_t guesses_per_row(int64_t context) const;
};

// Of tokens (rows, context) hides so many of each row at random, 80 % of them behind the mask token,
// 10 % behind a random one, and leaves 10 % as they are; labels (rows, context) get what stood
// there, and -100 elsewhere. What happens to a token is a function of the key, its row's number, from
// `first_row` on, and its position.
void HideTokens(const Masking& masking, RandomKey key, uint64_t first_row, int64_t context,
                std::vector<int64_t>* tokens, std::vector<int64_t>* labels);

}  // namespace zg::models
