#include "models/text/sample.h"

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
  parser->add_double("min-p", &flags->min_p, between(0, 1),
                     "draws from tokens so many times as likely as the likeliest one; 0: all");
}

GenerateOptions OptionsOf(const SampleFlags& flags, uint64_t seed) {
  GenerateOptions options;
  options.max_tokens = flags.tokens;
  options.sampler = {flags.temperature, flags.top_k, flags.top_p, seed, flags.min_p};
  options.slide = true;
  return options;
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
