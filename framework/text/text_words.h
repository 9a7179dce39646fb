// TextWords: the words that a tokenizer cuts a text into before it merges byte pairs, and the added
// tokens between them.
#pragma once

#include <functional>
#include <string_view>

#include "framework/base/status.h"
#include "framework/text/added_tokens.h"
#include "framework/text/pre_tokenizer.h"

namespace zg {

// The rules by which texts are cut.
struct TextRules {
  PreTokenizer pre_tokenizer;
  bool normalizes_to_nfc = false;
  AddedTokens added_tokens;       // found in the original text
  AddedTokens late_added_tokens;  // found in the text between those; none with a normalizer
};

// For one thread at a time.
class TextWords {
 public:
  // `rules` must outlive this object.
  explicit TextWords(const TextRules& rules) : rules_(rules), splitter_(rules.pre_tokenizer) {}

  // A word is valid UTF-8, or one of the longest runs of bytes that no valid character begins with.
  using OnWord = std::function<void(std::string_view word)>;
  using OnAddedToken = std::function<void(const AddedToken& token)>;

  // Calls these in the order of `text`, any bytes. Error: a search was abandoned (regex.h).
  Status Visit(std::string_view text, const OnWord& on_word, const OnAddedToken& on_added_token);

 private:
  Status VisitBytes(std::string_view bytes, const OnWord& on_word);
  Status VisitText(std::string_view text, const OnWord& on_word);

  const TextRules& rules_;
  WordSplitter splitter_;
};

}  // namespace zg
