#include "tests/testing/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/testing/lines.h"

namespace zg::testing {

std::string Difference(const HeapTensor& before, const HeapTensor& after,
                       const Tolerance& tolerance, bool keeps_finite) {
  if (before.type().shape != after.type().shape) {
    return fmt::format("{} before, {} after", before.type().ToString(), after.type().ToString());
  }
  const bool is_exact = tolerance.relative == 0;
  if (is_exact && SameBits(before, after)) return "";
  const std::vector<double> a = before.ToDoubles();
  const std::vector<double> b = after.ToDoubles();
  const double limit = tolerance.relative * std::max(MaxAbs(a), tolerance.smallest_scale);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (keeps_finite && !std::isfinite(a[i])) continue;
    // Beyond the range of f16.
    if (!is_exact && std::abs(a[i]) > 65504 && std::isinf(b[i])) continue;
    const bool is_close = a[i] == b[i] || std::abs(a[i] - b[i]) <= limit;
    if (is_close && (!is_exact || std::signbit(a[i]) == std::signbit(b[i]))) continue;
    return fmt::format("element {}: {} before, {} after", i, a[i], b[i]);
  }
  return "";
}

std::string DifferenceFromRounded(const TensorType& type, const std::vector<Observation>& values,
                                  const std::vector<Observation>& rounded) {
  for (size_t step = 0; step < rounded.size(); ++step) {
    const HeapTensor want = HeapTensor::FromDoubles(type, values[step].logical.ToDoubles());
    const std::string difference = Difference(want, rounded[step].logical);
    if (!difference.empty()) return fmt::format("step {}: {}", step, difference);
  }
  return "";
}

double MaxAbs(const std::vector<double>& values) {
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

double MeanOf(const Observations& seen, const std::string& key, int step, int num_steps) {
  const auto found = seen.find(key);
  if (found == seen.end()) return std::nan("");
  const size_t per_step = found->second.size() / num_steps;
  double sum = 0;
  for (size_t i = 0; i < per_step; ++i) {
    sum += found->second[step * per_step + i].logical.ToDoubles()[0];
  }
  return sum / static_cast<double>(per_step);
}

bool HasHalf(const ir::Graph& graph) {
  for (const ir::Node* node : graph.AllNodes()) {
    for (const ir::Value* output : node->outputs) {
      if (SizeOf(output->type.dtype) == 2) return true;
    }
  }
  return false;
}

std::string RunComparison::Run() {
  std::string failure = RunBefore();
  if (!failure.empty()) return failure;
  StatusOr<Observations> seen = RunOnRanks(after, options);
  if (!seen.ok()) return "after: " + seen.status().message() + "\n";
  seen_after = std::move(*seen);
  failure = CheckCopies();
  return failure.empty() && checks_aliases ? CheckWithoutAliases() : failure;
}

std::string RunComparison::RunBefore() {
  StatusOr<Observations> seen = RunOnRanks(before, options);
  if (!seen.ok()) return "before: " + seen.status().message() + "\n";
  seen_before = std::move(*seen);
  return "";
}

// Tensors in 16 bits that are copies of others must be so at the end of every step.
std::string RunComparison::CheckCopies() const {
  for (const ir::StoredTensor& tensor : after.tensors()) {
    if (tensor.copy_of.empty()) continue;
    const std::string difference =
        DifferenceFromRounded(tensor.type, seen_after.at("tensor " + tensor.copy_of),
                              seen_after.at("tensor " + tensor.name));
    if (difference.empty()) continue;
    return fmt::format("tensor {} is no copy of {}, {}\n", tensor.name, tensor.copy_of, difference);
  }
  return "";
}

std::string RunComparison::CheckWithoutAliases() const {
  RunOptions not_in_place = options;
  not_in_place.in_place = false;
  const StatusOr<Observations> seen = RunOnRanks(after, not_in_place);
  if (!seen.ok()) return "after, not in place: " + seen.status().message() + "\n";
  for (const auto& [key, in_place] : seen_after) {
    if (StartsWith(key, "variable ") && in_place[0].placement.is_partial()) continue;
    const std::vector<Observation>& elsewhere = seen->at(key);
    for (size_t i = 0; i < in_place.size(); ++i) {
      const std::string difference = Difference(elsewhere[i].logical, in_place[i].logical);
      if (difference.empty()) continue;
      return fmt::format("{} depends on who overwrites what, time {}: {}\n", key, i, difference);
    }
  }
  return "";
}

std::string RunComparison::CompareAll(const Tolerance& tolerance, const Filter& wanted) const {
  int num_compared = 0;
  const std::string failure = Compare(tolerance, wanted, &num_compared);
  if (!failure.empty() || num_compared > 0) return failure;
  return "there is nothing to compare: no output, no variable, no value\n";
}

std::string RunComparison::CompareIfAny(const Tolerance& tolerance, const Filter& wanted) const {
  int num_compared = 0;
  return Compare(tolerance, wanted, &num_compared);
}

std::string RunComparison::Compare(const Tolerance& tolerance, const Filter& wanted,
                                   int* num_compared) const {
  for (const auto& [key, observations] : seen_before) {
    if (!wanted(key)) continue;
    if (seen_after.count(key) == 0) {
      if (StartsWith(key, "variable ") || StartsWith(key, "gradient ")) continue;
      return fmt::format("{} is gone\n", key);
    }
    // A variable may get another shape in a bucket of the same name, and a reduction may leave
    // anything in a full-size one.
    const Observation& after_it = seen_after.at(key)[0];
    if (StartsWith(key, "variable ") &&
        (observations[0].logical.type() != after_it.logical.type() ||
         after_it.placement.is_partial())) {
      continue;
    }
    const std::string failure = Compare(key, tolerance);
    if (!failure.empty()) return failure;
    ++*num_compared;
  }
  return "";
}

std::string RunComparison::Compare(const std::string& key, const Tolerance& tolerance) const {
  const std::vector<Observation>& a = seen_before.at(key);
  const std::vector<Observation>& b = seen_after.at(key);
  if (a.size() != b.size()) {
    return fmt::format("{}: seen {} times before, {} times after\n", key, a.size(), b.size());
  }
  for (size_t i = 0; i < a.size(); ++i) {
    std::string difference = Difference(a[i].logical, b[i].logical, tolerance, keeps_finite);
    if (!difference.empty() && tolerance.noise > 0) {
      difference = Difference(a[i].logical, b[i].logical, Widened(tolerance, key, i), keeps_finite);
    }
    if (!difference.empty()) return fmt::format("{}, time {}: {}\n", key, i, difference);
  }
  return "";
}

Tolerance RunComparison::Widened(const Tolerance& tolerance, const std::string& key,
                                 size_t time) const {
  if (seen_with_noise.empty()) {
    RunOptions noisy = options;
    noisy.noise = tolerance.noise;
    StatusOr<Observations> seen = RunOnRanks(before, noisy);
    if (!seen.ok()) return tolerance;
    seen_with_noise = std::move(*seen);
  }
  const std::vector<double> exact = seen_before.at(key)[time].logical.ToDoubles();
  const std::vector<double> moved = seen_with_noise.at(key)[time].logical.ToDoubles();
  double largest = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (std::isfinite(moved[i])) largest = std::max(largest, std::abs(moved[i] - exact[i]));
  }
  Tolerance wider = tolerance;
  wider.smallest_scale =
      std::max(tolerance.smallest_scale, MaxAbs(exact)) + largest / tolerance.relative;
  return wider;
}

}  // namespace zg::testing
