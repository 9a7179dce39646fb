// Writes vocabularies as Hugging Face's tokenizer.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/text/pre_tokenizer.h"
#include "framework/text/tokenizer.h"

namespace zg {

// A way to cut text into words, named after the model that is known for it.
struct NamedPattern {
  std::string_view name;     // "gpt2", "llama3", "qwen2"
  std::string_view pattern;  // as in tokenizer.json
};
const std::vector<NamedPattern>& NamedPatterns();

// Error: there is none with that name.
StatusOr<PreTokenizer> NamedPreTokenizer(std::string_view name);

// The text of the file: the vocabulary and the added tokens of `parts`, with the words of the named
// pattern.
StatusOr<std::string> TokenizerAsJson(const TokenizerParts& parts, std::string_view pattern_name);

}  // namespace zg
