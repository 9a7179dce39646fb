// Sampler: continues a text with a trained GPT, token by token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zg::models {

struct SamplerOptions {
  double temperature = 0.8;  // 0: always the likeliest token
  uint64_t seed = 1;
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options) : options_(options) {}

  // A token drawn from softmax(logits / temperature); `position` numbers the draws. Every rank
  // draws the same.
  int64_t Draw(const float* logits, int64_t vocabulary, uint64_t position) const;

 private:
  SamplerOptions options_;
};

// The last `context` tokens of a text, padded with zeros behind, and where the last one stands.
struct ContextWindow {
  std::vector<int64_t> tokens;  // (1, context)
  int64_t last = 0;
};
ContextWindow LastTokens(const std::vector<int64_t>& text, int64_t context);

// Bytes as text for a terminal: control characters other than newline and tab, and bytes that are
// not UTF-8, as '?'.
std::string PrintableText(const std::vector<int64_t>& bytes);

}  // namespace zg::models
