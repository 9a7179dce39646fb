// The text that a demo generates at its end: flags, prompt, and printing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/job/flag_parser.h"
#include "framework/text/tokenizer.h"
#include "framework/train/generator.h"

namespace zg::models {

struct SampleFlags {
  int64_t tokens = 400;
  double temperature = 0.7;
  int64_t top_k = 0;
  double top_p = 1.0;
  std::string prompt;  // "": the demo takes one from its data
};

void AddSampleFlags(FlagParser* parser, SampleFlags* flags);

// The options for Generator, which continues beyond the context.
GenerateOptions OptionsOf(const SampleFlags& flags, uint64_t seed);

// The tokens of --prompt: its bytes, or those of the tokenizer unless it is null. Errors: a prompt
// that is longer than the context; a vocabulary that lacks them, or that no tokenizer explains.
StatusOr<std::vector<int64_t>> PromptTokens(const SampleFlags& flags, const Tokenizer* tokenizer,
                                            int64_t context, int64_t vocabulary);

// Bytes as text for a terminal: control characters other than newline and tab, and bytes that are
// not UTF-8, as '?'.
std::string PrintableText(const std::vector<int64_t>& bytes);

}  // namespace zg::models
