#include "zero/zerograph/choose_overlap.h"

#include "framework/passes/overlap_communication.h"
#include "framework/plan/step_estimate.h"

namespace zg {
namespace {

constexpr double kAsFast = 1.001;

}  // namespace

StatusOr<plan::OverlapChoices> ChooseOverlap(const Graph& graph, const Mesh& mesh,
                                             const Target& target, const plan::Machine& machine,
                                             bool sends_messages, CompileOptions* options) {
  plan::OverlapChoices choices;
  const bool is_auto = options->overlap_bytes == CompileOptions::kAuto;
  if (!is_auto || !plan::HasTransferPrices(mesh, machine)) {
    options->overlap_bytes = OverlapBytes(*options, sends_messages);
    return choices;
  }
  CompileOptions asked = *options;
  asked.dump_directory.clear();
  const auto predict = [&](int64_t max_bytes) -> StatusOr<plan::OverlapChoice> {
    asked.overlap_bytes = max_bytes;
    ZG_ASSIGN_OR_RETURN(const Program program, zero::Compile(graph, mesh, asked, target));
    return plan::OverlapChoice{max_bytes, plan::EstimateStep(program, machine).time.step_ms(),
                               program.memory.arena_bytes};
  };
  ZG_ASSIGN_OR_RETURN(const plan::OverlapChoice unlimited,
                      predict(CompileOptions::kUnlimitedBytes));
  const auto is_as_fast = [&](const plan::OverlapChoice& choice) {
    return choice.step_ms <= kAsFast * unlimited.step_ms;
  };
  ZG_ASSIGN_OR_RETURN(const plan::OverlapChoice off, predict(0));
  choices.tried = {off};
  int64_t max_bytes = options->zero.bucket_bytes;
  while (!is_as_fast(choices.tried.back()) && max_bytes <= unlimited.peak_bytes) {
    ZG_ASSIGN_OR_RETURN(const plan::OverlapChoice choice, predict(max_bytes));
    choices.tried.push_back(choice);
    max_bytes *= 2;
  }
  choices.tried.push_back(unlimited);
  choices.chosen = plan::BestOverlap(choices.tried);
  options->overlap_bytes = choices.best().max_bytes;
  return choices;
}

}  // namespace zg
