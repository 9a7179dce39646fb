#include "zero/stages_that_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "framework/base/format.h"
#include "framework/passes/zero_stage.h"

namespace zg::zero {
namespace {

int LowestStage(const ZeroOptions& zero) {
  int lowest = zero.stage;
  for (const StageRule& rule : zero.stage_rules) lowest = std::min(lowest, rule.stage);
  return lowest;
}

}  // namespace

std::string StagesThatFit(const Graph& graph, const Program& program, const Target& target,
                          int64_t available_bytes) {
  if (program.memory.arena_bytes <= available_bytes) return "";
  const Mesh& mesh = program.graph.mesh();
  if (mesh.num_ranks() == 1) {
    return "a stage divides memory among ranks, and this is one rank; smaller micro-batches or "
           "recomputation need less";
  }
  const auto bytes_with = [&](CompileOptions options) -> StatusOr<int64_t> {
    options.max_memory_bytes = CompileOptions::kUnlimitedBytes;
    ZG_ASSIGN_OR_RETURN(const Program other, Compile(graph, mesh, options, target));
    return other.memory.arena_bytes;
  };
  if (program.options.overlap_bytes > 0) {
    CompileOptions options = program.options;
    options.overlap_bytes = 0;
    const StatusOr<int64_t> bytes = bytes_with(options);
    if (bytes.ok() && *bytes <= available_bytes) {
      return fmt::format("without overlap it needs {}, which would fit", FormatExactBytes(*bytes));
    }
  }
  std::vector<std::string> fitting;
  int64_t last_bytes = program.memory.arena_bytes;
  for (int stage = LowestStage(program.options.zero) + 1; stage <= kLastStage; ++stage) {
    CompileOptions options = program.options;
    options.zero.set_stage(stage);
    const StatusOr<int64_t> bytes = bytes_with(options);
    if (!bytes.ok()) return "";  // only the error about memory is reported then
    last_bytes = *bytes;
    if (last_bytes > available_bytes) continue;
    fitting.push_back(fmt::format("stage {} needs {}", stage, FormatExactBytes(last_bytes)));
  }
  if (fitting.empty()) {
    return fmt::format(
        "no stage fits: stage {} needs {} per rank; more ranks, smaller micro-batches or "
        "recomputation need less",
        kLastStage, FormatExactBytes(last_bytes));
  }
  return fmt::format("per rank, {}, which would fit", fmt::join(fitting, "; "));
}

Status WithStagesThatFit(const Status& error, const Graph& graph, const Program& program,
                         const Target& target, int64_t available_bytes) {
  const std::string hint = StagesThatFit(graph, program, target, available_bytes);
  if (hint.empty()) return error;
  return Status(error.code(), error.message() + "\n  hint: " + hint);
}

}  // namespace zg::zero
