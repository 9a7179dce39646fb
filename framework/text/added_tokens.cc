#include "framework/text/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "framework/text/utf8.h"

namespace zg {
namespace {

size_t SpaceBehind(std::string_view text, size_t at) {
  while (true) {
    const Utf8Character next = FirstUtf8Character(text.substr(at));
    if (next.bytes == 0 || !IsUnicodeSpace(next.code)) return at;
    at += next.bytes;
  }
}

// The begin of the white space before byte `at`, but not before `from`.
size_t SpaceBefore(std::string_view text, size_t at, size_t from) {
  while (at > from) {
    size_t begin = at - 1;
    while (begin > from && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
    const Utf8Character last = FirstUtf8Character(text.substr(begin, at - begin));
    if (static_cast<size_t>(last.bytes) != at - begin || !IsUnicodeSpace(last.code)) break;
    at = begin;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.content.size() > b.content.size();
  });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const char first = tokens_[i].content[0];
    std::vector<uint32_t>& same_byte = by_first_byte_[static_cast<uint8_t>(first)];
    if (same_byte.empty()) first_bytes_.push_back(first);
    same_byte.push_back(static_cast<uint32_t>(i));
  }
}

std::optional<AddedTokens::Match> AddedTokens::Find(std::string_view text, size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (first_bytes_.size() == 1) {  // nearly always "<"
      const void* const found = std::memchr(text.data() + at, first_bytes_[0], text.size() - at);
      if (found == nullptr) return std::nullopt;
      at = static_cast<const char*>(found) - text.data();
    }
    for (const uint32_t index : by_first_byte_[static_cast<uint8_t>(text[at])]) {
      const AddedToken& token = tokens_[index];
      if (text.compare(at, token.content.size(), token.content) != 0) continue;
      const size_t end = at + token.content.size();
      return Match{&token, token.takes_space_before ? SpaceBefore(text, at, from) : at,
                   token.takes_space_behind ? SpaceBehind(text, end) : end};
    }
  }
  return std::nullopt;
}

}  // namespace zg
