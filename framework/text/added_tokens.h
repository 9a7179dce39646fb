// AddedTokens: texts that are one token wherever they occur, such as <|endoftext|>. They are found
// before the text is cut into words.
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
  // If tokens have the same content, the first counts. No content may be empty.
  explicit AddedTokens(std::vector<AddedToken> tokens = {});

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  // Bytes [begin, end) of the searched text, including the white space that the token takes.
  struct Match {
    const AddedToken* token = nullptr;
    size_t begin = 0;
    size_t end = 0;
  };

  // The first token that begins at or after byte `from`; the longest one among those that begin at
  // the same place.
  std::optional<Match> Find(std::string_view text, size_t from) const;

 private:
  std::vector<AddedToken> tokens_;                        // longest first
  std::array<std::vector<uint32_t>, 256> by_first_byte_;  // indices, longest first
  std::string first_bytes_;
};

}  // namespace zg
