#include "zero/zerograph/choose_overlap.h"

#include <utility>

#include "framework/passes/overlap_communication.h"
#include "framework/plan/step_estimate.h"

namespace zg {
namespace {

constexpr double kAsFast = 1.001;

// A graph's programs by the limit of overlap, however much memory they need.
class Programs {
 public:
  Programs(const Graph& graph, const Mesh& mesh, const Target& target, CompileOptions options)
      : graph_(graph), mesh_(mesh), target_(target), options_(std::move(options)) {
    options_.dump_directory.clear();
    options_.max_memory_bytes = CompileOptions::kUnlimitedBytes;
  }

  StatusOr<Program> Compile(int64_t max_bytes) const {
    CompileOptions options = options_;
    options.overlap_bytes = max_bytes;
    return zero::Compile(graph_, mesh_, options, target_);
  }

  StatusOr<plan::OverlapChoice> Predict(int64_t max_bytes, const plan::Machine& machine) const {
    ZG_ASSIGN_OR_RETURN(const Program program, Compile(max_bytes));
    return plan::OverlapChoice{max_bytes, plan::EstimateStep(program, machine).time.step_ms(),
                               program.memory.arena_bytes};
  }

 private:
  const Graph& graph_;
  const Mesh& mesh_;
  const Target& target_;
  CompileOptions options_;
};

// The limit of the rule, halved down to a bucket until the program fits.
StatusOr<int64_t> LimitByRule(const Programs& programs, const CompileOptions& options,
                              bool sends_messages) {
  int64_t max_bytes = OverlapBytes(options, sends_messages);
  if (options.max_memory_bytes == CompileOptions::kUnlimitedBytes) return max_bytes;
  while (max_bytes > 0) {
    ZG_ASSIGN_OR_RETURN(const Program program, programs.Compile(max_bytes));
    if (program.memory.arena_bytes <= options.max_memory_bytes) break;
    max_bytes = max_bytes > options.zero.bucket_bytes ? max_bytes / 2 : 0;
  }
  return max_bytes;
}

}  // namespace

StatusOr<plan::OverlapChoices> ChooseOverlap(const Graph& graph, const Mesh& mesh,
                                             const Target& target, const plan::Machine& machine,
                                             bool sends_messages, CompileOptions* options) {
  plan::OverlapChoices choices;
  if (options->overlap_bytes != CompileOptions::kAuto) return choices;
  const Programs programs(graph, mesh, target, *options);
  if (!plan::HasTransferPrices(mesh, machine)) {
    ZG_ASSIGN_OR_RETURN(options->overlap_bytes, LimitByRule(programs, *options, sends_messages));
    return choices;
  }
  const auto fits = [&](const plan::OverlapChoice& choice) {
    return choice.peak_bytes <= options->max_memory_bytes;
  };
  ZG_ASSIGN_OR_RETURN(const plan::OverlapChoice unlimited,
                      programs.Predict(CompileOptions::kUnlimitedBytes, machine));
  const auto is_as_fast = [&](const plan::OverlapChoice& choice) {
    return choice.step_ms <= kAsFast * unlimited.step_ms;
  };
  ZG_ASSIGN_OR_RETURN(const plan::OverlapChoice off, programs.Predict(0, machine));
  choices.tried = {off};
  int64_t max_bytes = options->zero.bucket_bytes;
  while (!is_as_fast(choices.tried.back()) && max_bytes <= unlimited.peak_bytes) {
    ZG_ASSIGN_OR_RETURN(const plan::OverlapChoice choice, programs.Predict(max_bytes, machine));
    if (!fits(choice)) break;
    choices.tried.push_back(choice);
    max_bytes *= 2;
  }
  if (fits(unlimited)) choices.tried.push_back(unlimited);
  choices.chosen = plan::BestOverlap(choices.tried);
  options->overlap_bytes = choices.best().max_bytes;
  return choices;
}

}  // namespace zg
