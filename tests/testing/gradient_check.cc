#include "tests/testing/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/base/random.h"
#include "tests/testing/lines.h"

namespace zg::testing {
namespace {

bool Reads(const ir::Node& node, const ir::Value* value) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* input) {
    return input == value || Reads(*input->producer, value);
  });
}

StatusOr<double> MeanLossAt(const RunComparison& runs, const ir::StoredTensor& tensor,
                            const std::vector<double>& direction, double step) {
  std::vector<double> moved = InitialTensor(runs.before, tensor, runs.options).ToDoubles();
  for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
  RunOptions options = runs.options;
  options.watched.clear();
  options.tensors[tensor.name] = HeapTensor::FromDoubles(tensor.type, moved);
  ZG_ASSIGN_OR_RETURN(const Observations seen, RunOnRanks(runs.before, options));
  return MeanOf(seen, "forward output loss", 0, options.steps);
}

// Along a random direction, with two steps and in both directions, which shows where the loss is
// too curved for them.
std::string CheckGradient(const RunComparison& runs, const ir::StoredTensor& tensor) {
  const std::vector<double> gradient =
      runs.seen_after.at("gradient " + tensor.name)[0].logical.ToDoubles();
  std::vector<double> direction(gradient.size());
  double expected = 0;
  for (size_t i = 0; i < direction.size(); ++i) {
    direction[i] = UniformAt({runs.options.seed, 77}, i) < 0.5 ? -1 : 1;
    expected += gradient[i] * direction[i];
  }
  const StatusOr<double> middle = MeanLossAt(runs, tensor, direction, 0.0);
  if (!middle.ok()) return middle.status().message() + "\n";
  double slopes[2] = {};
  double bend = 0;
  for (int i : {0, 1}) {
    const double step = i == 0 ? 1.0 / 256 : 1.0 / 1024;
    const StatusOr<double> up = MeanLossAt(runs, tensor, direction, step);
    if (!up.ok()) return up.status().message() + "\n";
    const StatusOr<double> down = MeanLossAt(runs, tensor, direction, -step);
    if (!down.ok()) return down.status().message() + "\n";
    slopes[i] = (*up - *down) / (2 * step);
    bend = ((*up - *middle) - (*middle - *down)) / step;
  }
  // A loss has rounding errors.
  const double noise =
      1e-6 * MeanOf(runs.seen_before, "forward output loss", 0, runs.options.steps) * 1024;
  const double limit =
      0.03 * std::max({std::abs(slopes[1]), std::abs(expected), 0.05}) + std::abs(noise);
  if (std::abs(slopes[1] - expected) <= limit) return "";
  if (std::abs(slopes[1] - slopes[0]) > limit / 4 || std::abs(bend) > limit / 4) return "";
  return fmt::format("gradient {}: {} along a direction, the losses say {}\n", tensor.name,
                     expected, slopes[1]);
}

}  // namespace

std::string CheckBuildBackward(RunComparison& runs) {
  runs.options.steps = 1;
  std::string failure = runs.Run();
  if (!failure.empty()) return failure;
  failure = runs.CompareIfAny(
      {}, [](const std::string& key) { return !StartsWith(key, "forward output loss"); });
  if (!failure.empty()) return failure;
  double before = MeanOf(runs.seen_before, "forward output loss", 0, runs.options.steps);
  if (runs.seen_before.count("forward output loss_weight") != 0) {
    before /= MeanOf(runs.seen_before, "forward output loss_weight", 0, runs.options.steps);
  }
  const double after = MeanOf(runs.seen_after, "output loss", 0, runs.options.steps);
  if (!(std::abs(before - after) <= 1e-5 * std::max(1.0, std::abs(before)))) {
    return fmt::format("the mean loss is {} before, {} after\n", before, after);
  }
  for (const ir::StoredTensor& tensor : runs.before.tensors()) {
    if (!ir::IsTrainableParameter(*tensor.storage) ||
        runs.seen_after.count("gradient " + tensor.name) != 0) {
      continue;
    }
    for (const ir::Node* node : runs.before.section(ir::SectionKind::kForward)->nodes) {
      if (node->op->name == "output" && node->attributes.String("name") == "loss" &&
          Reads(*node, tensor.storage)) {
        return fmt::format("parameter {} has no gradient\n", tensor.name);
      }
    }
  }
  if (HasHalf(runs.after)) return "";  // too coarse for differences
  for (const ir::StoredTensor& tensor : runs.before.tensors()) {
    if (runs.seen_after.count("gradient " + tensor.name) == 0) continue;
    failure = CheckGradient(runs, tensor);
    if (!failure.empty()) return failure;
  }
  return "";
}

}  // namespace zg::testing
