#include "tests/testing/placement_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/passes/insert_collectives.h"
#include "tests/testing/lines.h"

namespace zg::testing {
namespace {

bool ReadsMicroBatch(const ir::Node& node) {
  if (node.op->traits.kind == ir::OpKind::kInput)
    return !node.attributes.Sbp("placement").is_broadcast();
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [](const ir::Value* input) { return ReadsMicroBatch(*input->producer); });
}

std::string CompareParts(const RunComparison& runs, const std::string& key,
                         const Tolerance& tolerance) {
  const std::vector<Observation>& sequential = runs.seen_before.at(key);
  const std::vector<Observation>& parallel = runs.seen_after.at(key);
  size_t next = 0;
  for (const Observation& observation : parallel) {
    for (const HeapTensor& part : observation.parts) {
      if (next == sequential.size()) break;
      const HeapTensor& expected = sequential[next++].logical;
      // A broadcast value is the same for all micro-batches, or a sum over them.
      if (observation.placement.is_broadcast() && observation.parts.size() > 1) continue;
      std::string difference = Difference(expected, part, tolerance);
      if (!difference.empty() && tolerance.noise > 0) {
        difference = Difference(expected, part, runs.Widened(tolerance, key, next - 1));
      }
      if (!difference.empty()) return fmt::format("{}, part {}: {}\n", key, next - 1, difference);
    }
  }
  if (next == sequential.size()) return "";
  return fmt::format("{}: {} micro-batches before, {} after\n", key, sequential.size(), next);
}

// Whether a node other than an accumulator or the update needs a sum over ranks.
bool SumsRanksInBackward(const ir::Graph& program) {
  StatusOr<ir::Graph> graph = ir::Parse(ir::Print(program));
  if (!graph.ok() || !InsertCollectives().Run(*graph).ok()) return false;
  for (const ir::Node* node : graph->AllNodes()) {
    const bool is_sum = node->op->name == "all_reduce" || node->op->name == "reduce_scatter";
    if (is_sum && node->inputs.size() == 1 && node->section->kind != ir::SectionKind::kUpdate) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string CheckInferSbp(const RunComparison& runs) {
  // Ranks that share a micro-batch sum terms that one rank would compute at once.
  const bool shares_micro_batches =
      runs.after.mesh().num_ranks() > runs.after.mesh().num_data_ranks();
  const Tolerance of_micro_batches = !shares_micro_batches ? Tolerance{}
                                     : HasHalf(runs.after) ? kHalfTolerance
                                                           : Tolerance{1e-4, 0.1};
  const Tolerance of_steps =
      !shares_micro_batches && SumsRanksInBackward(runs.after) ? Tolerance{1e-4} : of_micro_batches;
  const auto is_by_micro_batch = [](const std::string& key) {
    return StartsWith(key, "forward ") || StartsWith(key, "eval ") || StartsWith(key, "value ");
  };
  std::string failure =
      runs.CompareIfAny(of_steps, [&](const std::string& key) { return !is_by_micro_batch(key); });
  for (const auto& [key, sequential] : runs.seen_before) {
    if (!failure.empty()) return failure;
    if (!is_by_micro_batch(key)) continue;
    if (runs.seen_after.count(key) == 0) return fmt::format("{} is gone\n", key);
    failure = CompareParts(runs, key, of_micro_batches);
  }
  return failure;
}

std::string CheckAverageEvalResults(const RunComparison& runs) {
  std::string failure =
      runs.CompareIfAny({}, [](const std::string& key) { return !StartsWith(key, "eval "); });
  for (const ir::Node* node : runs.before.AllNodes()) {
    if (!failure.empty()) return failure;
    if (node->section->kind != ir::SectionKind::kEval || node->op->name != "output") continue;
    const std::string key =
        fmt::format("eval {} output {}", node->section->name, node->attributes.String("name"));
    if (runs.seen_after.count(key) == 0) return fmt::format("{} is gone\n", key);
    const bool is_loss =
        node->inputs[0]->type == TensorType{DType::kF32, Shape{}} && ReadsMicroBatch(*node);
    const std::vector<Observation>& before = runs.seen_before.at(key);
    for (size_t i = 0; i < before.size() && failure.empty(); ++i) {
      std::vector<double> values = before[i].logical.ToDoubles();
      for (double& value : values) value /= is_loss ? runs.before.mesh().num_data_ranks() : 1;
      const HeapTensor expected = HeapTensor::FromDoubles(before[i].logical.type(), values);
      failure = Difference(expected, runs.seen_after.at(key)[i].logical, {is_loss ? 1e-6 : 0});
      if (!failure.empty()) failure = fmt::format("{}: {}\n", key, failure);
    }
  }
  return failure;
}

}  // namespace zg::testing
