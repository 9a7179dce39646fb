#include "models/gpt/sampler.h"

#include <algorithm>
#include <cmath>

#include "framework/base/random.h"

namespace zg::models {

int64_t Sampler::Draw(const float* logits, int64_t vocabulary, uint64_t position) const {
  const float* largest = std::max_element(logits, logits + vocabulary);
  if (options_.temperature <= 0) return largest - logits;
  std::vector<double> weights(vocabulary);
  double total = 0;
  for (int64_t i = 0; i < vocabulary; ++i) {
    weights[i] = std::exp((static_cast<double>(logits[i]) - *largest) / options_.temperature);
    total += weights[i];
  }
  double rest = total * UniformAt(FoldIn(RandomKey{options_.seed}, "sample"), position);
  for (int64_t i = 0; i < vocabulary; ++i) {
    rest -= weights[i];
    if (rest < 0) return i;
  }
  return largest - logits;
}

ContextWindow LastTokens(const std::vector<int64_t>& text, int64_t context) {
  const int64_t count = std::min<int64_t>(text.size(), context);
  ContextWindow window;
  window.tokens.assign(context, 0);
  std::copy(text.end() - count, text.end(), window.tokens.begin());
  window.last = std::max<int64_t>(0, count - 1);
  return window;
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
