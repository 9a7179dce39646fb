// Translate: matches the tensors of a file with those of the other side, and reports all mismatches
// together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/weights.h"
#include "tools/checkpoint/foreign_names.h"

namespace zg::checkpoint_tool {

struct TranslatedTensor {
  Weights::Tensor from;
  std::string name;            // on the other side
  std::vector<int64_t> shape;  // likewise
  const NameRule* rule = nullptr;
};

struct Translation {
  std::vector<TranslatedTensor> tensors;
  std::vector<std::string> skipped;  // names of tensors that the other side lacks
  std::map<char, int64_t> sizes;     // by the letter of the rules' shapes
  int64_t count = 0;                 // of the numbers that * stands for: layers
};

// `weights` are those of side `from`. Error: all tensors that are missing, unexpected, misshapen or
// not floating-point; a second copy of a tied tensor that differs.
StatusOr<Translation> Translate(const ForeignFormat& format, Side from, const Weights& weights);

}  // namespace zg::checkpoint_tool
