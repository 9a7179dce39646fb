#include "models/text/sample.h"

#include <fmt/format.h>

namespace zg::models {

void AddSampleFlags(FlagParser* parser, SampleFlags* flags) {
  parser->section("Sample");
  parser->add_int("sample-tokens", &flags->tokens, at_least(0),
                  "tokens written at the end; 0: none");
  parser->add_string("prompt", &flags->prompt,
                     "what they continue; by default the beginning of the validation data");
  parser->add_double("temperature", &flags->temperature, at_least(0),
                     "0: always the likeliest token");
  parser->add_int("top-k", &flags->top_k, at_least(0),
                  "draws from so many likeliest tokens; 0: all");
  parser->add_double("top-p", &flags->top_p, NumberRange{0, 1, /*without_min=*/true},
                     "draws from the likeliest tokens that have this probability together");
}

GenerateOptions OptionsOf(const SampleFlags& flags, uint64_t seed) {
  GenerateOptions options;
  options.max_tokens = flags.tokens;
  options.sampler = {flags.temperature, flags.top_k, flags.top_p, seed};
  options.slide = true;
  return options;
}

StatusOr<std::vector<int64_t>> PromptTokens(const SampleFlags& flags, const Tokenizer* tokenizer,
                                            int64_t context, int64_t vocabulary) {
  std::vector<int64_t> tokens;
  if (tokenizer != nullptr) {
    ZG_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids,
                        TextEncoder(*tokenizer).encode(flags.prompt));
    tokens.assign(ids.begin(), ids.end());
  } else if (vocabulary > 256) {
    return InvalidArgument(
        "--prompt: got a text for a model of {} tokens, expected one of bytes; give the --tokenizer "
        "whose tokens they are",
        vocabulary);
  } else {
    for (const char c : flags.prompt) tokens.push_back(static_cast<unsigned char>(c));
  }
  if (static_cast<int64_t>(tokens.size()) > context) {
    return InvalidArgument(
        "--prompt: got a text of {} tokens, expected at most {}, what the model sees; give a shorter "
        "one",
        tokens.size(), context);
  }
  for (const int64_t token : tokens) {
    if (token < vocabulary) continue;
    return InvalidArgument("--prompt: it has the token {}, the model knows 0 to {}", token,
                           vocabulary - 1);
  }
  return tokens;
}

std::string PrintableText(const std::vector<int64_t>& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int64_t byte = bytes[i];
    if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte < 0x7f)) {
      text += static_cast<char>(byte);
      continue;
    }
    const size_t length = byte >= 0xf0 && byte < 0xf5   ? 4
                          : byte >= 0xe0                ? 3
                          : byte >= 0xc2 && byte < 0xe0 ? 2
                                                        : 0;
    bool whole = length > 0 && byte < 0xf5 && i + length <= bytes.size();
    for (size_t k = 1; whole && k < length; ++k) whole = (bytes[i + k] & 0xc0) == 0x80;
    if (!whole) {
      text += '?';
      continue;
    }
    for (size_t k = 0; k < length; ++k) text += static_cast<char>(bytes[i + k]);
    i += length - 1;
  }
  return text;
}

}  // namespace zg::models
