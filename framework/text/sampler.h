// Sampler: draws the next token of a text from a model's logits.
//
//   SamplerOptions options;
//   options.temperature = 0.8;
//   ZG_ASSIGN_OR_RETURN(const Sampler sampler, Sampler::create(options));
//   ZG_ASSIGN_OR_RETURN(const int64_t token, sampler.draw(logits, text.size()));
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"

namespace zg {

struct SamplerOptions {
  double temperature = 1.0;  // logits are divided by it; 0: always the likeliest token
  int64_t top_k = 0;         // only this many likeliest tokens; 0: all
  // Out of these, only the smallest set of likeliest tokens with this total probability, at least
  // one (Holtzman et al., arXiv 1904.09751); 1: all.
  double top_p = 1.0;
  uint64_t seed = 1;
  // Only tokens at least this many times as likely as the likeliest one (Nguyen et al., arXiv
  // 2407.01082); 0: all.
  double min_p = 0.0;
};

class Sampler {
 public:
  // Errors: a temperature < 0, a top_k < 0, a top_p outside of (0, 1], a min_p outside of [0, 1].
  static StatusOr<Sampler> create(const SamplerOptions& options);

  // The probability of each token; among equally likely ones the first counts as likelier. They are
  // computed with single operations in a fixed order. Error: no logits, or one that is NaN or
  // +infinity, or none above -infinity.
  StatusOr<std::vector<double>> probabilities(const std::vector<float>& logits) const;

  // Draws a token with these probabilities. `number` counts the draws of a text: the same seed,
  // number and logits give the same token, on every rank.
  StatusOr<int64_t> draw(const std::vector<float>& logits, uint64_t number) const;

 private:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  SamplerOptions options_;
};

}  // namespace zg
