#include "framework/train/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace zg {

BeamSearch::BeamSearch(int64_t num_beams, const BeamSearchOptions& options)
    : num_beams_(num_beams), options_(options), live_(1), done_(options.max_tokens == 0) {}

Status BeamSearch::take(const std::vector<float>& logits) {
  ZG_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, LikeliestCandidates(logits));
  std::vector<Beam> next;
  parents_.clear();
  tokens_.clear();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    Beam beam = live_[candidate.beam];
    beam.tokens.push_back(candidate.token);
    beam.log_probability = candidate.log_probability;
    const bool is_at_end = static_cast<int64_t>(beam.tokens.size()) == options_.max_tokens;
    if (is_at_end || options_.stop == candidate.token) {
      if (static_cast<int64_t>(i) < num_beams_) Finish(std::move(beam));
    } else if (static_cast<int64_t>(next.size()) < num_beams_) {
      parents_.push_back(candidate.beam);
      tokens_.push_back(candidate.token);
      next.push_back(std::move(beam));
    }
  }
  live_ = std::move(next);
  const bool has_all = static_cast<int64_t>(finished_.size()) == num_beams_;
  done_ = live_.empty() || (has_all && Score(live_[0]) <= finished_.back().score);
  return Status::Ok();
}

// Twice as many as there are beams, of which each can be finished by one.
StatusOr<std::vector<BeamSearch::Candidate>> BeamSearch::LikeliestCandidates(
    const std::vector<float>& logits) const {
  const size_t vocabulary = logits.size() / live_.size();
  std::vector<Candidate> candidates;
  for (size_t beam = 0; beam < live_.size(); ++beam) {
    const float* const row = logits.data() + beam * vocabulary;
    const float largest = *std::max_element(row, row + vocabulary);
    double sum = 0.0;
    for (size_t token = 0; token < vocabulary; ++token) {
      sum += std::exp(static_cast<double>(row[token]) - largest);
    }
    if (!std::isfinite(sum)) {
      return InvalidArgument(
          "beam search: the logits after beam {} have a sum of exponentials of {}, expected numbers",
          beam, sum);
    }
    const double log_sum = largest + std::log(sum);
    for (size_t token = 0; token < vocabulary; ++token) {
      if (row[token] == -std::numeric_limits<float>::infinity()) continue;  // never
      candidates.push_back({live_[beam].log_probability + row[token] - log_sum,
                            static_cast<int64_t>(beam), static_cast<int64_t>(token)});
    }
  }
  const auto is_likelier = [](const Candidate& a, const Candidate& b) {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  };
  const size_t kept = std::min<size_t>(2 * num_beams_, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + kept, candidates.end(), is_likelier);
  candidates.resize(kept);
  return candidates;
}

void BeamSearch::Finish(Beam beam) {
  beam.score = Score(beam);
  const auto is_better = [](const Beam& a, const Beam& b) { return a.score > b.score; };
  finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), beam, is_better),
                   std::move(beam));
  if (static_cast<int64_t>(finished_.size()) > num_beams_) finished_.pop_back();
}

double BeamSearch::Score(const Beam& beam) const {
  const auto size = static_cast<double>(beam.tokens.size());
  return beam.log_probability / std::pow(size, options_.length_penalty);
}

}  // namespace zg
