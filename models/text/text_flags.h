// The text that a demo trains on: its flags, and the parts for training and for validation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/token_dataset.h"
#include "framework/job/flag_parser.h"
#include "models/text/default_text.h"

namespace zg::models {

struct TextFlags {
  std::vector<std::string> data = DefaultData();
  int64_t eval_windows = 128;
};

void AddTextFlags(FlagParser* parser, TextFlags* flags);

// The last tenth is for validation. `vocabulary` is the model's; 0: that of the data, 256 for text.
// Errors: there is no text; a token beyond the vocabulary; a part that is shorter than `context`
// tokens plus one.
StatusOr<TokenSplit> OpenText(const TextFlags& flags, int64_t vocabulary, int64_t context);

}  // namespace zg::models
