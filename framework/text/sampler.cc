#include "framework/text/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "framework/base/random.h"

namespace zg {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Status CheckLogits(const std::vector<float>& logits) {
  bool is_possible = false;
  for (size_t token = 0; token < logits.size(); ++token) {
    const float logit = logits[token];
    if (std::isnan(logit) || logit == kInfinity) {
      return InvalidArgument("sampler: the logit of token {} is {}, expected a number", token,
                             logit);
    }
    is_possible = is_possible || logit > -kInfinity;
  }
  if (is_possible) return Status::Ok();
  return InvalidArgument("sampler: got {} logits, none above -infinity, expected at least one",
                         logits.size());
}

// Tokens, likeliest first.
std::vector<int64_t> InOrder(const std::vector<float>& logits) {
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  return tokens;
}

}  // namespace

StatusOr<Sampler> Sampler::create(const SamplerOptions& options) {
  if (!(options.temperature >= 0.0) || std::isinf(options.temperature)) {
    return InvalidArgument(
        "sampler: temperature is {}, expected a number >= 0; 0 always takes the "
        "likeliest token",
        options.temperature);
  }
  if (options.top_k < 0) {
    return InvalidArgument("sampler: top_k is {}, expected >= 0; 0 takes all tokens",
                           options.top_k);
  }
  if (!(options.top_p > 0.0 && options.top_p <= 1.0)) {
    return InvalidArgument("sampler: top_p is {}, expected 0 < top_p <= 1; 1 takes all tokens",
                           options.top_p);
  }
  if (!(options.min_p >= 0.0 && options.min_p <= 1.0)) {
    return InvalidArgument("sampler: min_p is {}, expected 0 <= min_p <= 1; 0 takes all tokens",
                           options.min_p);
  }
  return Sampler(options);
}

StatusOr<std::vector<double>> Sampler::probabilities(const std::vector<float>& logits) const {
  ZG_RETURN_IF_ERROR(CheckLogits(logits));
  std::vector<double> weights(logits.size());
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (options_.temperature == 0.0) {
    weights[largest - logits.begin()] = 1.0;
    return weights;
  }
  for (size_t token = 0; token < logits.size(); ++token) {
    weights[token] =
        std::exp((static_cast<double>(logits[token]) - *largest) / options_.temperature);
  }
  const auto count = static_cast<int64_t>(logits.size());
  const bool is_cut = (options_.top_k > 0 && options_.top_k < count) || options_.top_p < 1.0;
  if (is_cut) {
    const std::vector<int64_t> tokens = InOrder(logits);
    int64_t kept = options_.top_k > 0 ? std::min(options_.top_k, count) : count;
    double total = 0.0;
    for (int64_t i = 0; i < kept; ++i) total += weights[tokens[i]];
    double sum = 0.0;
    for (int64_t i = 0; i < kept && options_.top_p < 1.0; ++i) {
      sum += weights[tokens[i]];
      if (sum >= options_.top_p * total) kept = i + 1;
    }
    for (int64_t i = kept; i < count; ++i) weights[tokens[i]] = 0.0;
  }
  for (double& weight : weights) {  // the likeliest token's is 1
    if (weight < options_.min_p) weight = 0.0;
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= total;
  return weights;
}

StatusOr<int64_t> Sampler::draw(const std::vector<float>& logits, uint64_t number) const {
  ZG_ASSIGN_OR_RETURN(const std::vector<double> of_tokens, probabilities(logits));
  double rest = UniformAt(FoldIn(RandomKey{options_.seed}, "sample"), number);
  int64_t last = 0;  // used if roundings leave a rest
  for (size_t token = 0; token < of_tokens.size(); ++token) {
    if (of_tokens[token] == 0.0) continue;
    last = static_cast<int64_t>(token);
    rest -= of_tokens[token];
    if (rest < 0.0) break;
  }
  return last;
}

}  // namespace zg
