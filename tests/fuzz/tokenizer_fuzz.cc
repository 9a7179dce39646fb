// Any bytes: 'j' and a tokenizer.json, which is an error or a tokenizer whose tokens are the same
// bytes after a round trip through text; 't' and a text, which a round trip with GPT-2's words and
// bytes as tokens restores.
#include <string>

#include "framework/base/check.h"
#include "framework/text/byte_characters.h"
#include "framework/text/oniguruma_pattern.h"
#include "framework/text/tokenizer.h"
#include "tests/fuzz/input_file.h"

namespace zg {
namespace {

void ReadJson(const std::string& text) {
  const InputFile input(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  const StatusOr<Tokenizer> tokenizer = Tokenizer::from_json_file(input.path());
  if (!tokenizer.ok()) {
    ZG_CHECK(!tokenizer.status().message().empty(), "an error says nothing");
    return;
  }
  // A search that PCRE2 abandons is an error; otherwise all ids are tokens.
  const auto ids = TextEncoder(*tokenizer).encode("It's 12\n\n  \u00E9<s> \xff");
  if (ids.ok()) ZG_CHECK(tokenizer->decode(*ids).ok(), "an id is no token");
}

Tokenizer BytesAsTokens() {
  TokenizerParts parts;
  parts.path = "bytes";
  for (int byte = 0; byte < 256; ++byte) {
    parts.vocabulary.ids[BytesAsCharacters(std::string(1, static_cast<char>(byte)))] = byte;
  }
  AddedToken token;
  token.id = 256;
  token.content = "<s>";
  parts.added_tokens.push_back(token);
  const std::string pattern = PcreOfOniguruma(kGpt2Pattern).value();
  parts.pre_tokenizer.splits.push_back(Regex::Compile(pattern).value());
  return Tokenizer::create(parts).value();
}

void EncodeAndDecode(const std::string& text) {
  static const Tokenizer tokenizer = BytesAsTokens();
  static TextEncoder encoder(tokenizer);
  const auto ids = encoder.encode(text);
  ZG_CHECK(ids.ok(), "{}", ids.status().message());
  ZG_CHECK(tokenizer.decode(*ids).value() == text, "decoded it is another text");
}

}  // namespace
}  // namespace zg

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] == 'j') zg::ReadJson(text);
  if (data[0] == 't') zg::EncodeAndDecode(text);
  return 0;
}
