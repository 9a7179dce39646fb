#include "tests/testing/pass_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "tests/testing/eval_weights_check.h"
#include "tests/testing/gradient_check.h"
#include "tests/testing/lines.h"
#include "tests/testing/pass_text.h"
#include "tests/testing/placement_check.h"
#include "tests/testing/run_comparison.h"
#include "tests/testing/update_check.h"
#include "tests/testing/virtual_mesh.h"

namespace zg::testing {
namespace {

// In fragments the values that nobody reads are the results. Those of updates lie in their variables,
// which are seen anyway.
std::string WatchUnread(std::string_view pass, RunComparison& runs) {
  for (const ir::Node* node : runs.before.AllNodes()) {
    for (const ir::Value* output : node->outputs) {
      if (!output->users.empty() || node->inputs.empty()) continue;
      const ir::Value* same = runs.after.FindValue(output->name);
      if (same != nullptr && same->type.dtype == output->type.dtype) {
        runs.options.watched.insert(output->name);
      } else if (PassName(pass) != "eliminate-dead-nodes" &&
                 node->op->traits.kind != ir::OpKind::kUpdate) {
        return fmt::format("%{}, which nobody reads, is gone\n", output->name);
      }
    }
  }
  return "";
}

// A scalar of every micro-batch is returned as their mean. The values of buffers have the rounding
// of a mean, and later steps may read them.
std::string CheckAccumulateResults(RunComparison& runs) {
  std::string failure = runs.Run();
  if (!failure.empty()) return failure;
  constexpr double kTolerance = 1e-5;
  failure = runs.CompareIfAny({kTolerance}, [&](const std::string& key) {
    return !StartsWith(key, "forward ") || runs.seen_after.count(key) != 0;
  });
  if (!failure.empty()) return failure;
  for (const auto& [key, observations] : runs.seen_before) {
    if (!StartsWith(key, "forward ") || runs.seen_after.count(key) != 0) continue;
    const std::string name = key.substr(std::string("forward ").size());
    if (runs.seen_after.count(name) == 0) return fmt::format("{} is gone\n", key);
    for (int step = 0; step < runs.options.steps; ++step) {
      const double before = MeanOf(runs.seen_before, key, step, runs.options.steps);
      const double after = MeanOf(runs.seen_after, name, step, runs.options.steps);
      if (std::isnan(before) && std::isnan(after)) continue;
      if (std::abs(before - after) <= kTolerance * std::max(1.0, std::abs(before))) continue;
      return fmt::format("the mean of {} is {} before, {} after\n", name, before, after);
    }
  }
  return "";
}

// What a run begins with is rounded, and everything else is the same.
std::string CheckRoundWeights(RunComparison& runs) {
  std::set<std::string> rounded;
  for (const ir::StoredTensor& tensor : runs.after.tensors()) {
    if (tensor.type.dtype == DType::kF32) continue;
    const std::string key = "tensor " + tensor.name;
    rounded.insert(key);
    const std::string difference =
        DifferenceFromRounded(tensor.type, runs.seen_before.at(key), runs.seen_after.at(key));
    if (!difference.empty()) return fmt::format("{} is not rounded, {}\n", key, difference);
  }
  return runs.CompareAll({}, [&](const std::string& key) { return rounded.count(key) == 0; });
}

// What is there stays, and gradients that it adds are 0.
std::string CheckMatchPhases(RunComparison& runs) {
  for (const auto& [key, observations] : runs.seen_after) {
    if (!StartsWith(key, "gradient ") || runs.seen_before.count(key) != 0) continue;
    for (const Observation& seen : observations) {
      if (MaxAbs(seen.logical.ToDoubles()) != 0) return fmt::format("{} is not 0\n", key);
    }
  }
  return runs.CompareAll({}, [](const std::string&) { return true; });
}

void ForgetEvals(Observations* seen) {
  for (auto of = seen->begin(); of != seen->end();) {
    of = StartsWith(of->first, "eval ") ? seen->erase(of) : std::next(of);
  }
}

}  // namespace

std::string CheckPass(std::string_view pass, const ir::Graph& before, const ir::Graph& after,
                      const PassCheckOptions& options) {
  const std::string name = PassName(pass);
  const auto all = [](const std::string&) { return true; };
  RunOptions run;
  run.seed = options.seed;
  run.tensors["loss_scaler"] = InitialLossScaler();
  RunComparison runs(before, after, run);
  runs.checks_aliases = !options.is_fragment;
  runs.keeps_finite = pass.find("keep_finite=true") != pass.npos;
  if (options.is_fragment) {
    const std::string failure = WatchUnread(pass, runs);
    if (!failure.empty()) return failure;
  }
  if (name == "build-backward") return CheckBuildBackward(runs);
  if (name == "accumulate-results") return CheckAccumulateResults(runs);
  if (name == "append-update") return CheckAppendUpdate(runs, PassOptions(pass));
  if (name == "scale-loss") return CheckScaleLoss(runs);
  if (name == "clip-gradients") return CheckClipGradients(runs, PassOptions(pass));
  if (name == "master-weights" && before.micro_batches() > 1) return CheckOtherSums(runs, 0.01);
  // Ranks that share a micro-batch either each sum their terms over the micro-batches, or all sum
  // them at once.
  const bool shares_micro_batches = before.mesh().num_ranks() > before.mesh().num_data_ranks();
  const bool sums_by_step = pass.find("\"step\"") != pass.npos;
  if (name == "accumulate-gradients" && (sums_by_step || shares_micro_batches)) {
    return CheckOtherSums(runs, HasHalf(before) ? 0.01 : 1e-4);
  }
  const std::string failure = runs.Run();
  if (!failure.empty()) return failure;
  if (options.has_other_evals) ForgetEvals(&runs.seen_before);
  if (name == "infer-sbp" && !IsPlaced(before)) return CheckInferSbp(runs);
  if (name == "average-eval-results") return CheckAverageEvalResults(runs);
  if (name == "eval-weights") return CheckEvalWeights(runs);
  if (name == "match-phases") return CheckMatchPhases(runs);
  if (name == "round-weights") return CheckRoundWeights(runs);
  if (name == "mixed-precision") {
    return runs.CompareAll(kHalfTolerance, all);
  }
  return runs.CompareAll({}, all);
}

}  // namespace zg::testing
