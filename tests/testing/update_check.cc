#include "tests/testing/update_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/testing/lines.h"
#include "tests/testing/optimizer_formulas.h"

namespace zg::testing {
namespace {

// 2^6, so that f16 gradients of tests stay finite.
constexpr double kLossScale = 64;
constexpr double kInitialLossScaleExponent = 16;
// Times the scale: below it, f16 has too few digits without the scale.
constexpr double kSmallestF16Gradient = 0.05;
// Times the scale: intermediate results of a larger one may exceed f16.
constexpr double kLargeF16Gradient = 1024;

bool IsFinite(const HeapTensor& tensor) {
  const std::vector<double> values = tensor.ToDoubles();
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

double LossScalerExponent() { return std::log2(kLossScale) - kInitialLossScaleExponent; }

std::string CheckState(const RunComparison& runs, const std::string& name,
                       const std::vector<double>& expected) {
  const auto found = runs.seen_after.find("tensor " + name);
  if (found == runs.seen_after.end()) return "";
  const HeapTensor& got = found->second.back().logical;
  const std::string difference = Difference(HeapTensor::FromDoubles(got.type(), expected), got);
  return difference.empty() ? "" : fmt::format("tensor {}: {}\n", name, difference);
}

// The optimizer's formulas in double precision, from the observed gradients.
std::string CheckUpdate(const RunComparison& runs, const ir::Attributes& options,
                        const ir::StoredTensor& tensor) {
  OptimizerFormulas formulas(options, tensor.type.shape,
                             InitialTensor(runs.after, tensor, runs.options).ToDoubles());
  for (int step = 1; step <= runs.options.steps; ++step) {
    const std::vector<double> g =
        runs.seen_after.at("gradient " + tensor.name)[step - 1].logical.ToDoubles();
    const HeapTensor& actual = runs.seen_after.at("tensor " + tensor.name)[step - 1].logical;
    const std::vector<double>& p = formulas.Update(g, actual.ToDoubles());
    const HeapTensor expected = HeapTensor::FromDoubles(tensor.type, p);
    const std::string difference = Difference(expected, actual, {1e-5});
    if (!difference.empty()) {
      return fmt::format("tensor {}, step {}, formulas before, program after: {}\n", tensor.name,
                         step, difference);
    }
  }
  return "";
}

}  // namespace

HeapTensor InitialLossScaler() {
  return HeapTensor::FromDoubles({DType::kF32, Shape{4}}, {LossScalerExponent(), 0, 0, 0});
}

std::string CheckAppendUpdate(RunComparison& runs, const ir::Attributes& options) {
  std::string failure = runs.Run();
  if (!failure.empty()) return failure;
  for (const auto& [key, observations] : runs.seen_before) {
    if (StartsWith(key, "output ") || StartsWith(key, "gradient ")) {
      if (runs.seen_after.count(key) == 0) return fmt::format("{} is gone\n", key);
      // Both have the same parameters only in the first step.
      const std::string difference =
          Difference(observations[0].logical, runs.seen_after.at(key)[0].logical);
      if (!difference.empty()) return fmt::format("{}: {}\n", key, difference);
    }
  }
  for (const ir::Node* node : runs.after.AllNodes()) {
    if (node->op->traits.kind != ir::OpKind::kUpdate) continue;
    for (const ir::StoredTensor& tensor : runs.after.tensors()) {
      if (tensor.storage != node->inputs[0]) continue;
      failure = CheckUpdate(runs, options, tensor);
      if (!failure.empty()) return failure;
    }
  }
  return "";
}

std::string CheckOtherSums(RunComparison& runs, double tolerance) {
  runs.options.steps = 1;
  std::string failure = runs.Run();
  if (!failure.empty()) return failure;
  failure =
      runs.CompareIfAny({}, [](const std::string& key) { return StartsWith(key, "output "); });
  if (!failure.empty()) return failure;
  Tolerance of_gradients = {tolerance};
  for (const auto& [key, observations] : runs.seen_before) {
    if (!StartsWith(key, "gradient ")) continue;
    of_gradients.smallest_scale =
        std::max(of_gradients.smallest_scale, MaxAbs(observations[0].logical.ToDoubles()));
  }
  // Adam makes full steps of gradients that weight decay cancels except for their rounding, and so
  // do other optimizers that divide by roots of squares. States follow squares.
  return runs.CompareAll(of_gradients, [&](const std::string& key) {
    if (StartsWith(key, "gradient ")) return true;
    if (!StartsWith(key, "tensor ")) return false;
    const std::string name = key.substr(7);
    for (const char* state : {".exp_avg", ".row_var", ".col_var", ".variance"}) {
      const std::string suffix = state;
      if (runs.before.FindTensor(name + suffix) != nullptr) return false;
      const bool is_factor = suffix != ".exp_avg" && name.size() > suffix.size() &&
                             name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
      if (is_factor) return false;
    }
    return true;
  });
}

std::string CheckScaleLoss(RunComparison& runs) {
  runs.options.steps = 1;
  std::string failure = runs.Run();
  if (!failure.empty()) return failure;
  failure = runs.CompareAll({}, [](const std::string& key) {
    return !StartsWith(key, "gradient ") && !StartsWith(key, "value ") &&
           !StartsWith(key, "variable ");
  });
  if (!failure.empty()) return failure;
  // What is small beside others may be what is left of these.
  Tolerance tolerance = {0.01, kSmallestF16Gradient};
  for (const auto& [key, observations] : runs.seen_before) {
    if (!StartsWith(key, "gradient ")) continue;
    tolerance.smallest_scale = std::max(tolerance.smallest_scale,
                                        kLossScale * MaxAbs(observations[0].logical.ToDoubles()));
  }
  for (const auto& [key, observations] : runs.seen_before) {
    if (!StartsWith(key, "gradient ")) continue;
    std::vector<double> scaled = observations[0].logical.ToDoubles();
    for (double& value : scaled) value *= kLossScale;
    const HeapTensor expected =
        HeapTensor::FromDoubles({DType::kF32, observations[0].logical.type().shape}, scaled);
    if (runs.seen_after.count(key) == 0) return fmt::format("{} is gone\n", key);
    const HeapTensor& after = runs.seen_after.at(key)[0].logical;
    if (MaxAbs(scaled) > kLargeF16Gradient && !IsFinite(after)) continue;
    const std::string difference = Difference(expected, after, tolerance);
    if (!difference.empty()) return fmt::format("{}, {} times: {}\n", key, kLossScale, difference);
  }
  return "";
}

std::string CheckClipGradients(RunComparison& runs, const ir::Attributes& options) {
  runs.options.steps = 1;
  std::string failure = runs.Run();
  if (!failure.empty()) return failure;
  const double scale = runs.after.FindTensor("loss_scaler") != nullptr ? kLossScale : 1;
  double squares = 0;
  for (const auto& [key, observations] : runs.seen_before) {
    if (!StartsWith(key, "gradient ")) continue;
    for (double g : observations[0].logical.ToDoubles()) squares += g / scale * g / scale;
  }
  const auto weight_output = runs.seen_after.find("output loss_weight");
  const bool is_weighted = weight_output != runs.seen_after.end();
  const double weight = is_weighted ? weight_output->second[0].logical.ToDoubles()[0] : 1;
  const double norm = std::sqrt(squares) / weight;
  const double max_norm = options.Has("max_norm") ? options.Float("max_norm") : 1.0;
  const bool takes_norm = !is_weighted || max_norm > 0;
  if (takes_norm != (runs.seen_after.count("output grad_norm") != 0)) {
    return fmt::format("there is {} output grad_norm\n", takes_norm ? "no" : "an");
  }
  const double got =
      takes_norm ? runs.seen_after.at("output grad_norm")[0].logical.ToDoubles()[0] : norm;
  // Too large for f16, where updates are skipped: tests of loss scaling cover that.
  if (HasHalf(runs.before) && !std::isfinite(norm) && !std::isfinite(got)) return "";
  if (!(std::abs(got - norm) <= 1e-5 * norm)) {
    return fmt::format("the norm of the gradients is {}, the output {}\n", norm, got);
  }
  // As in torch.nn.utils.clip_grad_norm_.
  const double factor = max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
  runs.options.gradient_factor = factor / scale / weight;
  failure = runs.RunBefore();
  if (!failure.empty()) return failure;
  // One update is done and none skipped.
  failure = CheckState(runs, "loss_scaler", {LossScalerExponent(), 1, 1, 0});
  if (failure.empty()) failure = CheckState(runs, "update_counter", {1, 0});
  if (!failure.empty()) return failure;
  return runs.CompareAll({runs.options.gradient_factor == 1.0 ? 0 : 1e-5},
                         [](const std::string& key) {
                           return key != "tensor loss_scaler" && !StartsWith(key, "value ");
                         });
}

}  // namespace zg::testing
