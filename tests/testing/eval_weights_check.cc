#include "tests/testing/eval_weights_check.h"

#include <fmt/format.h>

#include <vector>

#include "framework/base/random.h"
#include "framework/ir/op_registry.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "tests/testing/interpreter.h"
#include "tests/testing/lines.h"

namespace zg::testing {
namespace {

bool IsOfEval(const std::string& key) { return StartsWith(key, "eval "); }

HeapTensor RandomContents(const ir::StoredTensor& tensor, unsigned seed) {
  const RandomKey key = FoldIn(RandomKey{seed, 1}, tensor.name);
  std::vector<double> values(tensor.type.shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = UniformAt(key, i) - 0.5;
  return HeapTensor::FromDoubles(tensor.type, values);
}

// Where `variable` holds what belongs to the parameter; null: nowhere.
const ir::StoredTensor* TensorBeside(const ir::Graph& graph, const ir::StoredTensor& parameter,
                                     const ir::Value* variable) {
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    // By shape too: tensors without elements lie where the next one begins.
    if (tensor.storage == variable && tensor.offset_elements == parameter.offset_elements &&
        tensor.type.shape == parameter.type.shape) {
      return &tensor;
    }
  }
  return nullptr;
}

// What the eval program of `update` makes of one parameter and its states.
StatusOr<HeapTensor> WeightsOf(const ir::Graph& graph, const ir::Node& update,
                               const ir::StoredTensor& parameter, const RunOptions& options) {
  ir::OpCall call{ir::OpRegistry::Global().Find("fused_elementwise"), {}, {}};
  call.attributes.Set("program", update.attributes.String("eval_program"));
  std::vector<HeapTensor> inputs = {InitialTensor(graph, parameter, options)};
  for (size_t i = 2; i < update.inputs.size(); ++i) {
    const ir::StoredTensor* const state = TensorBeside(graph, parameter, update.inputs[i]);
    if (state == nullptr) return InvalidArgument("{} has no state {}", parameter.name, i - 2);
    inputs.push_back(InitialTensor(graph, *state, options));
  }
  for (const HeapTensor& input : inputs) call.inputs.push_back(input.type());
  ZG_RETURN_IF_ERROR(ir::CompleteAttributes(call.op->attributes, &call.attributes));
  ZG_ASSIGN_OR_RETURN(const std::vector<HeapTensor> weights,
                      Execute(CpuKernels(), call, inputs, StepContext()));
  return weights[0];
}

}  // namespace

std::string CheckEvalWeights(const RunComparison& runs) {
  std::string failure =
      runs.CompareIfAny({}, [](const std::string& key) { return !IsOfEval(key); });
  if (!failure.empty()) return failure;
  // States that are not zero, and no training that would change them.
  RunOptions after = runs.options;
  after.steps = 0;
  for (const ir::StoredTensor& tensor : runs.before.tensors()) {
    if (tensor.copy_of.empty()) after.tensors[tensor.name] = RandomContents(tensor, after.seed);
  }
  RunOptions before = after;
  for (const ir::Node* update : runs.before.section(ir::SectionKind::kUpdate)->nodes) {
    if (!update->attributes.Has("eval_program")) continue;
    if (update->attributes.String("eval_program").empty()) continue;
    for (const ir::StoredTensor& parameter : runs.before.tensors()) {
      if (parameter.storage != update->inputs[0]) continue;
      const StatusOr<HeapTensor> weights = WeightsOf(runs.before, *update, parameter, after);
      if (!weights.ok()) return weights.status().message() + "\n";
      before.tensors[parameter.name] = *weights;
    }
  }
  RunComparison evals(runs.before, runs.after, before);
  failure = evals.RunBefore();
  if (!failure.empty()) return failure;
  StatusOr<Observations> seen = RunOnRanks(runs.after, after);
  if (!seen.ok()) return "after: " + seen.status().message() + "\n";
  evals.seen_after = std::move(*seen);
  return evals.CompareIfAny({}, IsOfEval);
}

}  // namespace zg::testing
