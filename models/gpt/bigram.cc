#include "models/gpt/bigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/base/check.h"

namespace zg {
namespace {

// The successors of each token: successors[begin[a] .. begin[a + 1]) are the tokens after `a`.
struct Successors {
  std::vector<uint64_t> begin;
  std::vector<uint32_t> tokens;
};

Successors GroupByPrevious(const TokenDataset& train) {
  Successors successors;
  successors.begin.assign(train.vocabulary_size() + 1, 0);
  const uint64_t num_pairs = train.size() < 2 ? 0 : train.size() - 1;
  for (uint64_t i = 0; i < num_pairs; ++i) ++successors.begin[train[i] + 1];
  for (int a = 0; a < train.vocabulary_size(); ++a) successors.begin[a + 1] += successors.begin[a];
  successors.tokens.resize(num_pairs);
  std::vector<uint64_t> next_free = successors.begin;
  for (uint64_t i = 0; i < num_pairs; ++i) {
    successors.tokens[next_free[train[i]]++] = static_cast<uint32_t>(train[i + 1]);
  }
  return successors;
}

}  // namespace

BigramModel BigramModel::Fit(const TokenDataset& train) {
  const int vocabulary = train.vocabulary_size();
  const Successors successors = GroupByPrevious(train);
  BigramModel model;
  model.vocabulary_size_ = vocabulary;
  model.row_begin_.push_back(0);
  model.row_total_.resize(vocabulary);
  std::vector<uint32_t> counts(vocabulary, 0);        // of the pairs of one row
  std::vector<uint64_t> num_previous(vocabulary, 0);  // distinct tokens before `next`
  uint64_t num_singles = 0, num_doubles = 0;          // pairs seen once, twice
  std::vector<uint32_t> distinct;
  for (int a = 0; a < vocabulary; ++a) {
    const uint64_t begin = successors.begin[a], end = successors.begin[a + 1];
    model.row_total_[a] = end - begin;
    distinct.clear();
    for (uint64_t i = begin; i < end; ++i) {
      const uint32_t next = successors.tokens[i];
      if (counts[next]++ == 0) distinct.push_back(next);
    }
    std::sort(distinct.begin(), distinct.end());
    for (const uint32_t next : distinct) {
      model.pairs_.push_back({next, counts[next]});
      num_singles += counts[next] == 1;
      num_doubles += counts[next] == 2;
      ++num_previous[next];
      counts[next] = 0;
    }
    model.row_begin_.push_back(model.pairs_.size());
  }
  // The usual estimate, kept away from 0 and 1, where the probability of pairs or of the rest would
  // vanish.
  const double estimate = static_cast<double>(num_singles) /
                          static_cast<double>(std::max<uint64_t>(num_singles + 2 * num_doubles, 1));
  model.discount_ = std::clamp(estimate, 0.05, 0.95);
  // Half a pair for every token, so that unseen tokens keep a probability.
  const double total = static_cast<double>(model.pairs_.size()) + 0.5 * vocabulary;
  for (int b = 0; b < vocabulary; ++b) {
    model.lower_order_.push_back((static_cast<double>(num_previous[b]) + 0.5) / total);
  }
  return model;
}

double BigramModel::Probability(int64_t previous, int64_t next) const {
  ZG_CHECK(previous >= 0 && previous < vocabulary_size_ && next >= 0 && next < vocabulary_size_,
           "bigram ({}, {}) with a vocabulary of {}", previous, next, vocabulary_size_);
  if (row_total_[previous] == 0) return lower_order_[next];
  const auto begin = pairs_.begin() + row_begin_[previous];
  const auto end = pairs_.begin() + row_begin_[previous + 1];
  const auto found = std::lower_bound(
      begin, end, next, [](const Pair& pair, int64_t value) { return pair.next < value; });
  const double count = found != end && found->next == next ? found->count - discount_ : 0.0;
  const double rest = discount_ * static_cast<double>(end - begin);
  return (count + rest * lower_order_[next]) / static_cast<double>(row_total_[previous]);
}

double BigramModel::MeanNegativeLogLikelihood(const TokenDataset& tokens) const {
  if (tokens.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0.0;
  for (uint64_t i = 0; i + 1 < tokens.size(); ++i) {
    sum -= std::log(Probability(tokens[i], tokens[i + 1]));
  }
  return sum / static_cast<double>(tokens.size() - 1);
}

}  // namespace zg
