// The common state of Tokenizer and TextEncoder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/text/text_words.h"
#include "framework/text/tokenizer.h"

namespace zg {

struct Tokenizer::State {
  std::string path;
  BpeModel model;
  TextRules rules;
  std::vector<uint32_t> begin_ids, end_ids;
  std::vector<std::optional<std::string>> bytes_by_id;
};

}  // namespace zg
