// AddedTokens: texts that are one token wherever they stand, such as <|endoftext|>, found before the
// text is cut into words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zg {

struct AddedToken {
  uint32_t id = 0;
  std::string content;
  bool takes_space_before = false;  // "lstrip": white space on that side belongs to the token
  bool takes_space_behind = false;  // "rstrip"
  bool is_special = false;
};

class AddedTokens {
 public:
  // Of tokens with the same content the first counts. No content may be empty.
  explicit AddedTokens(std::vector<AddedToken> tokens = {});

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  // Bytes [begin, end) of the text that was searched, with the white space that the token takes.
  struct Match {
    const AddedToken* token = nullptr;
    size_t begin = 0;
    size_t end = 0;
  };

  // The first token at or behind byte `from`; of those that begin at the same place the longest.
  std::optional<Match> Find(std::string_view text, size_t from) const;

 private:
  std::vector<AddedToken> tokens_;                        // longest first
  std::array<std::vector<uint32_t>, 256> by_first_byte_;  // indices, longest first
  std::string first_bytes_;
};

}  // namespace zg
