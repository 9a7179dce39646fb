// BeamSearch: keeps the likeliest beginnings of a continuation, its beams. It knows no model: a caller
// gives the logits after each beam.
//
//   BeamSearch search(4, options);
//   search.take(logits)                         // after the prompt: one row
//   while (!search.done()) {
//     ... beam i is beam parents()[i] of before, and token tokens()[i] ...
//     search.take(logits)                       // a row for each beam
//   }
//   search.best()
//
// The search and its scores are those of transformers' generate(num_beams, early_stopping=False): a beam
// that takes the stop token is finished; it ends when as many beams are finished as are kept, and
// the best of the others has no better score than the worst of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/base/status.h"

namespace zg {

struct BeamSearchOptions {
  int64_t max_tokens = 100;
  std::optional<int64_t> stop = {};  // the token that ends a text; it is returned, too
  // The score of n tokens is their log-probability / n^length_penalty: above 0 longer texts win more
  // often.
  double length_penalty = 1.0;
};

struct Beam {
  std::vector<int64_t> tokens;
  double log_probability = 0.0;  // the sum over tokens
  double score = 0.0;            // of a finished one
};

class BeamSearch {
 public:
  BeamSearch(int64_t num_beams, const BeamSearchOptions& options);

  // Goes on by a token. `logits`: (beams, vocabulary), of the beams that parents() and tokens() have
  // named. Among equally likely tokens the first beam's come first, and smaller ones. Error: logits
  // that are NaN or +infinity.
  Status take(const std::vector<float>& logits);

  bool done() const { return done_; }
  const std::vector<int64_t>& parents() const { return parents_; }
  const std::vector<int64_t>& tokens() const { return tokens_; }
  // Those that are finished, best first.
  const std::vector<Beam>& best() const { return finished_; }

 private:
  struct Candidate {
    double log_probability;
    int64_t beam;
    int64_t token;
  };
  StatusOr<std::vector<Candidate>> LikeliestCandidates(const std::vector<float>& logits) const;
  void Finish(Beam beam);
  double Score(const Beam& beam) const;

  int64_t num_beams_;
  BeamSearchOptions options_;
  std::vector<Beam> live_;
  std::vector<Beam> finished_;
  std::vector<int64_t> parents_, tokens_;
  bool done_ = false;
};

}  // namespace zg
