// RunComparison: runs two graphs on virtual ranks (ranked_run.h) from the same variables and data,
// and compares what was seen. Everything returns the text of a failure, with its end of line, and
// nothing when there is none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/ir/graph.h"
#include "tests/testing/ranked_run.h"

namespace zg::testing {

// How far values may be from each other, as a share of the largest element, or of `smallest_scale`
// where that is larger; 0: the same bits.
struct Tolerance {
  double relative = 0;
  double smallest_scale = 1e-3;
};

// Where two values differ by more than that. A gradient may be there in 16 bits or as the same
// number in f32. With `keeps_finite`, after has a number of its own where before has none.
std::string Difference(const HeapTensor& before, const HeapTensor& after,
                       const Tolerance& tolerance = {}, bool keeps_finite = false);

double MaxAbs(const std::vector<double>& values);

// Of a scalar, the mean over the micro-batches of one of `num_steps` steps; NaN if it was not seen.
double MeanOf(const Observations& seen, const std::string& key, int step, int num_steps);

// Whether any value has 16 bits.
bool HasHalf(const ir::Graph& graph);

class RunComparison {
 public:
  // Which of the keys of Observations.
  using Filter = std::function<bool(const std::string& key)>;

  // The graphs must outlive it.
  RunComparison(const ir::Graph& before, const ir::Graph& after, const RunOptions& options)
      : before(before), after(after), options(options) {}

  const ir::Graph& before;
  const ir::Graph& after;
  RunOptions options;
  bool checks_aliases = true;  // that nothing in `after` depends on what a node overwrites
  bool keeps_finite = false;   // as of Difference
  Observations seen_before;
  Observations seen_after;

  // A failure, too: tensors that are to be copies of others and are not.
  std::string Run();
  std::string RunBefore();

  // What was seen before and is `wanted`. Outputs and tensors may not get lost; values that bridge
  // sections come and go. CompareAll fails when there is nothing to compare.
  std::string CompareAll(const Tolerance& tolerance, const Filter& wanted) const;
  std::string CompareIfAny(const Tolerance& tolerance, const Filter& wanted) const;

 private:
  std::string CheckCopies() const;
  std::string CheckWithoutAliases() const;
  std::string Compare(const std::string& key, const Tolerance& tolerance) const;
  std::string Compare(const Tolerance& tolerance, const Filter& wanted, int* num_compared) const;
};

}  // namespace zg::testing
