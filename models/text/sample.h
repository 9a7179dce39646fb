// The text that a demo generates at its end: flags, prompt, and printing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/job/flag_parser.h"
#include "framework/train/generator.h"

namespace zg::models {

struct SampleFlags {
  int64_t tokens = 400;
  double temperature = 0.7;
  int64_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  std::string prompt;  // "": the demo takes one from its data
};

void AddSampleFlags(FlagParser* parser, SampleFlags* flags);

// The options for Generator, which continues beyond the context.
GenerateOptions OptionsOf(const SampleFlags& flags, uint64_t seed);

// Bytes as text for a terminal: control characters other than newline and tab, and bytes that are
// not UTF-8, as '?'.
std::string PrintableText(const std::vector<int64_t>& bytes);

}  // namespace zg::models
