// RunComparison: runs two graphs on virtual ranks (ranked_run.h) from the same variables and data,
// and compares the observations. All functions return the text of a failure, with its end of line,
// and nothing if there is none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/ir/graph.h"
#include "tests/testing/ranked_run.h"

namespace zg::testing {

// The allowed difference of values, as a share of the largest element, or of `smallest_scale` if
// that is larger; 0: the same bits.
struct Tolerance {
  double relative = 0;
  double smallest_scale = 1e-3;
  // Where sums cancel and are then divided by their size, rounding counts for more. Results may then
  // also differ by as much as they move when everything that `before` begins with and is fed is off
  // by this share. 0: no such allowance.
  double noise = 0;
};

// The tolerance of 16-bit results, for sums that cancel.
inline constexpr Tolerance kHalfTolerance = {0.06, /*smallest_scale=*/0.1, /*noise=*/1.0 / 32};

// The first place where two values differ by more than that. A gradient may be in 16 bits or be the
// same number in f32. With `keeps_finite`, after may have a finite number where before has none.
std::string Difference(const HeapTensor& before, const HeapTensor& after,
                       const Tolerance& tolerance = {}, bool keeps_finite = false);

// The first step after which a tensor of this type does not hold `values`, rounded to it.
std::string DifferenceFromRounded(const TensorType& type, const std::vector<Observation>& values,
                                  const std::vector<Observation>& rounded);

double MaxAbs(const std::vector<double>& values);

// The mean of a scalar over the micro-batches of one of `num_steps` steps; NaN if it was not
// observed.
double MeanOf(const Observations& seen, const std::string& key, int step, int num_steps);

// Whether any value has 16 bits.
bool HasHalf(const ir::Graph& graph);

class RunComparison {
 public:
  // Selects keys of Observations.
  using Filter = std::function<bool(const std::string& key)>;

  // The graphs must outlive it.
  RunComparison(const ir::Graph& before, const ir::Graph& after, const RunOptions& options)
      : before(before), after(after), options(options) {}

  const ir::Graph& before;
  const ir::Graph& after;
  RunOptions options;
  bool checks_aliases = true;  // whether nothing in `after` depends on a value that a node
                               // overwrites
  bool keeps_finite = false;   // as in Difference
  Observations seen_before;
  Observations seen_after;
  mutable Observations seen_with_noise;  // of `before`, where it was asked for

  // It is also a failure if tensors that must be copies of others are not.
  std::string Run();
  std::string RunBefore();

  // Compares the observations that are `wanted`. Outputs and tensors must not get lost; values that
  // cross sections may appear and disappear. CompareAll fails if there is nothing to compare.
  std::string CompareAll(const Tolerance& tolerance, const Filter& wanted) const;
  std::string CompareIfAny(const Tolerance& tolerance, const Filter& wanted) const;

  // The tolerance with what its noise makes of what was seen before, there.
  Tolerance Widened(const Tolerance& tolerance, const std::string& key, size_t time) const;

 private:
  std::string CheckCopies() const;
  std::string CheckWithoutAliases() const;
  std::string Compare(const std::string& key, const Tolerance& tolerance) const;
  std::string Compare(const Tolerance& tolerance, const Filter& wanted, int* num_compared) const;
};

}  // namespace zg::testing
