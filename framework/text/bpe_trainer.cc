#include "framework/text/bpe_trainer.h"

#include <algorithm>
#include <set>

#include "framework/text/byte_characters.h"
#include "framework/text/pair_counts.h"

namespace zg {
namespace {

constexpr size_t kNumBytes = 256;
constexpr int64_t kMaxVocabulary = 1 << 24;

std::string CharactersOfByte(size_t byte) {
  return BytesAsCharacters(std::string(1, static_cast<char>(byte)));
}

}  // namespace

StatusOr<BpeTrainer> BpeTrainer::Create(const BpeTrainerOptions& options) {
  const auto smallest = static_cast<int64_t>(kNumBytes + options.special_tokens.size());
  if (options.vocabulary_size < smallest || options.vocabulary_size > kMaxVocabulary) {
    return InvalidArgument(
        "vocabulary: got {} tokens, expected from {} (the bytes and the special tokens) to {}",
        options.vocabulary_size, smallest, kMaxVocabulary);
  }
  std::set<std::string> taken;
  for (size_t byte = 0; byte < kNumBytes; ++byte) taken.insert(CharactersOfByte(byte));
  for (const std::string& token : options.special_tokens) {
    if (token.empty() || !taken.insert(token).second) {
      return InvalidArgument(
          "special token '{}': expected some text that is no other special token and no single "
          "character of a byte",
          token);
    }
  }
  return BpeTrainer(options);
}

BpeTrainer::BpeTrainer(const BpeTrainerOptions& options) : options_(options) {
  for (const std::string& content : options.special_tokens) {
    AddedToken token;
    token.id = static_cast<uint32_t>(special_tokens_.size());
    token.content = content;
    token.is_special = true;
    special_tokens_.push_back(token);
  }
}

Status BpeTrainer::Add(std::string_view text) {
  const TextRules rules = {options_.pre_tokenizer, /*normalizes_to_nfc=*/false,
                           AddedTokens(special_tokens_), AddedTokens()};
  std::string key;
  return TextWords(rules).Visit(
      text,
      [&](std::string_view word) {
        key.assign(word);
        ++word_counts_[key];
      },
      [](const AddedToken&) {});
}

TokenizerParts BpeTrainer::Train() const {
  TokenizerParts parts;
  parts.pre_tokenizer = options_.pre_tokenizer;
  parts.added_tokens = special_tokens_;
  std::unordered_map<std::string, uint32_t>& ids = parts.vocabulary.ids;
  std::vector<std::string> tokens = options_.special_tokens;  // by id
  std::vector<uint8_t> bytes(kNumBytes);
  for (size_t byte = 0; byte < kNumBytes; ++byte) bytes[byte] = static_cast<uint8_t>(byte);
  std::sort(bytes.begin(), bytes.end(),
            [](uint8_t a, uint8_t b) { return CharacterOfByte(a) < CharacterOfByte(b); });
  uint32_t id_of_byte[kNumBytes] = {};
  for (const uint8_t byte : bytes) {
    id_of_byte[byte] = static_cast<uint32_t>(tokens.size());
    tokens.push_back(CharactersOfByte(byte));
  }
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], static_cast<uint32_t>(id));

  PairCounts pairs;
  for (const auto& [word, count] : word_counts_) {
    std::vector<uint32_t> word_ids;
    for (const char byte : word) word_ids.push_back(id_of_byte[static_cast<uint8_t>(byte)]);
    pairs.AddWord(std::move(word_ids), count);
  }
  while (static_cast<int64_t>(tokens.size()) < options_.vocabulary_size) {
    const std::optional<TokenPair> pair = pairs.TakeMostFrequent(options_.min_count);
    if (!pair) break;
    const std::string joined = tokens[pair->left] + tokens[pair->right];
    const auto [found, is_new] = ids.emplace(joined, static_cast<uint32_t>(tokens.size()));
    if (is_new) tokens.push_back(joined);
    parts.vocabulary.merges.emplace_back(tokens[pair->left], tokens[pair->right]);
    pairs.Join(*pair, found->second);
  }
  return parts;
}

}  // namespace zg
