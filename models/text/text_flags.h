// The flags of the text that a demo trains on (text.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/job/flag_parser.h"
#include "models/text/default_text.h"

namespace zg::models {

struct TextFlags {
  std::vector<std::string> data = DefaultData();
  int64_t eval_windows = 128;
  std::string tokenizer;
  double validation_fraction = 0.1;
};

void AddTextFlags(FlagParser* parser, TextFlags* flags);

}  // namespace zg::models
