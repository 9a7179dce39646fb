// Translate: which tensor of a file is which of the other side's, with all that does not fit told
// at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "tools/checkpoint/foreign_names.h"
#include "tools/checkpoint/weights.h"

namespace zg::checkpoint_tool {

struct TranslatedTensor {
  Weights::Tensor from;
  std::string name;            // on the other side
  std::vector<int64_t> shape;  // likewise
  const NameRule* rule = nullptr;
};

struct Translation {
  std::vector<TranslatedTensor> tensors;
  std::vector<std::string> skipped;  // names of what the other side has no tensor for
  std::map<char, int64_t> sizes;     // by the letter of the rules' shapes
  int64_t count = 0;                 // of the numbers that stand for *: layers
};

// `weights` are those of side `from`. Error: everything that is missing, unexpected, misshapen or
// not of floating-point numbers; a second copy of a tied tensor that is not the same.
StatusOr<Translation> Translate(const ForeignFormat& format, Side from, const Weights& weights);

}  // namespace zg::checkpoint_tool
