// Tokenizer: text to the ids of a byte-level BPE vocabulary and back, as in GPT-2, Llama 3, Qwen2
// and others. Ids are those of Hugging Face's `tokenizers` (encode with add_special_tokens=False).
//
//   ZG_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::open("downloads/qwen2"));
//   TextEncoder encoder(tokenizer);
//   ZG_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, encoder.encode("Hello, world"));
//   ZG_ASSIGN_OR_RETURN(const std::string text, tokenizer.decode(ids));
//
// Any bytes can be encoded. Bytes that are not UTF-8, on which Hugging Face's tokenizer fails, are
// cut into words of their own: every longest run of bytes with which no valid character begins.
// Decoding restores the encoded bytes; with a normalizer it gives their normal form, without the
// white space that an added token with "lstrip" or "rstrip" has taken.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/text/added_tokens.h"
#include "framework/text/bpe_model.h"
#include "framework/text/pre_tokenizer.h"

namespace zg {

// The parts of a tokenizer, as its files describe them.
struct TokenizerParts {
  std::string path;  // for messages
  BpeVocabulary vocabulary;
  PreTokenizer pre_tokenizer;
  bool normalizes_to_nfc = false;
  std::vector<AddedToken> added_tokens;  // found in the original text
  // Found after those, in the text between them ("normalized": true). None with a normalizer.
  std::vector<AddedToken> late_added_tokens;
  // The ids that Hugging Face adds around a text with add_special_tokens=True.
  std::vector<uint32_t> begin_ids, end_ids;
};

// Immutable, cheap to copy, for any number of threads.
class Tokenizer {
 public:
  // Opens a tokenizer.json; or a directory with one, or with vocab.bpe and encoder.json, or with
  // merges.txt and vocab.json. Errors name file, key, the value found and the expected one;
  // unsupported features are errors, too.
  static StatusOr<Tokenizer> open(const std::string& path);
  static StatusOr<Tokenizer> from_json_file(const std::string& path);
  // GPT-2's two files: merges, one pair per line; ids by token. <|endoftext|> is an added token.
  static StatusOr<Tokenizer> from_gpt2_files(const std::string& merges_path,
                                             const std::string& ids_path);
  static StatusOr<Tokenizer> create(const TokenizerParts& parts);

  const std::string& path() const;
  int64_t vocabulary_size() const;  // the largest id + 1
  const std::vector<uint32_t>& begin_ids() const;
  const std::vector<uint32_t>& end_ids() const;
  // The id of an added token; nothing if none has that content.
  std::optional<uint32_t> added_token_id(std::string_view content) const;

  // The bytes of the tokens, one after the other. Error: an id without a token.
  StatusOr<std::string> decode(const std::vector<uint32_t>& ids) const;

 private:
  friend class TextEncoder;
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// Encodes texts; for one thread at a time. Caches the tokens of recent words.
class TextEncoder {
 public:
  explicit TextEncoder(const Tokenizer& tokenizer);
  TextEncoder(TextEncoder&& other) noexcept;
  ~TextEncoder();

  // Receives ids in order, at least one at a time. An error ends the encoding.
  using Sink = std::function<Status(const std::vector<uint32_t>& ids)>;

  // Passes the ids of `text` to `sink` in pieces of about 10,000, so that a mapped file of any size
  // can be encoded. With a normalizer it also needs memory for the text between two added tokens.
  Status encode(std::string_view text, const Sink& sink);
  StatusOr<std::vector<uint32_t>> encode(std::string_view text);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zg
