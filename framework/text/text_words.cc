#include "framework/text/text_words.h"

#include <string>

#include "framework/text/normalizer.h"
#include "framework/text/utf8.h"

namespace zg {
namespace {

// Visits added tokens, and the text between them.
template <typename VisitBetween>
Status VisitAround(const AddedTokens& tokens, std::string_view text,
                   const TextWords::OnAddedToken& on_added_token,
                   const VisitBetween& visit_between) {
  size_t done = 0;
  while (const auto match = tokens.Find(text, done)) {
    ZG_RETURN_IF_ERROR(visit_between(text.substr(done, match->begin - done)));
    on_added_token(*match->token);
    done = match->end;
  }
  return visit_between(text.substr(done));
}

}  // namespace

Status TextWords::Visit(std::string_view text, const OnWord& on_word,
                        const OnAddedToken& on_added_token) {
  return VisitAround(rules_.added_tokens, text, on_added_token, [&](std::string_view between) {
    return VisitAround(rules_.late_added_tokens, between, on_added_token,
                       [&](std::string_view plain) { return VisitBytes(plain, on_word); });
  });
}

Status TextWords::VisitBytes(std::string_view bytes, const OnWord& on_word) {
  while (!bytes.empty()) {
    const size_t valid = ValidUtf8Bytes(bytes);
    ZG_RETURN_IF_ERROR(VisitText(bytes.substr(0, valid), on_word));
    bytes.remove_prefix(valid);
    const size_t invalid = InvalidUtf8Bytes(bytes);
    if (invalid > 0) on_word(bytes.substr(0, invalid));
    bytes.remove_prefix(invalid);
  }
  return Status::Ok();
}

Status TextWords::VisitText(std::string_view text, const OnWord& on_word) {
  if (!rules_.normalizes_to_nfc || IsSurelyNfc(text)) return splitter_.Split(text, on_word);
  ZG_ASSIGN_OR_RETURN(const std::string normal, ToNfc(text));
  return splitter_.Split(normal, on_word);
}

}  // namespace zg
