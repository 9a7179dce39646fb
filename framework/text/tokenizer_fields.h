// Fields of tokenizer files that more than one reader needs, or that are long.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "framework/text/bpe_model.h"
#include "framework/text/json_node.h"

namespace zg {

// An object of ids by token.
Status ReadTokenIds(const JsonNode& node, BpeVocabulary* vocabulary);

// A TemplateProcessing: the special tokens before and after the text, for one text. Error: the text
// is not in it exactly once.
Status ReadTemplateIds(const JsonNode& node, std::vector<uint32_t>* begin_ids,
                       std::vector<uint32_t>* end_ids);

}  // namespace zg
