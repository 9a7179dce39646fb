#include "tools/plan/fit.h"

#include <algorithm>
#include <optional>

#include "framework/base/format.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

constexpr int kMaxRanksTried = 1024;

// What is tried, from what costs least time.
struct Choice {
  int64_t batch;
  bool recompute;
  int stage;
};

std::vector<Choice> Choices(const PlanOptions& options) {
  const bool can_recompute = options.model == "gpt" && options.compile.recompute.empty();
  std::vector<Choice> choices;
  for (int64_t batch = options.batch; batch >= 1; --batch) {
    if (options.batch % batch != 0) continue;
    // Early updates need one micro-batch per rank, so a smaller one cannot be made up for.
    if (options.compile.update_early && batch != options.batch) break;
    for (const bool recompute : {false, true}) {
      if (recompute && !can_recompute) continue;
      for (int stage = 0; stage <= (options.ranks == 1 ? 0 : 3); ++stage) {
        choices.push_back({batch, recompute, stage});
      }
    }
  }
  return choices;
}

PlanOptions With(PlanOptions options, const Choice& choice) {
  const auto [batch, recompute, stage] = choice;
  if (recompute) options.compile.recompute = {"blocks.*"};
  options.compile.zero.stage = stage;
  options.compile.micro_batches *= options.batch / batch;
  options.batch = batch;
  return options;
}

// The fewest ranks, doubling those of `options`, with which its micro-batch fits at stage 3.
StatusOr<std::optional<int>> RanksThatFit(PlanOptions options, int64_t budget_bytes) {
  options.compile.zero.stage = 3;
  while (options.ranks * 2 <= kMaxRanksTried) {
    options.ranks *= 2;
    options.compile.micro_batches *= 2;
    ZG_ASSIGN_OR_RETURN(const JobPlan plan, PlanModel(options));
    if (plan.peak_bytes <= budget_bytes) return std::optional<int>(options.ranks);
  }
  return std::optional<int>();
}

// A size that --fit accepts and that is no less: whole megabytes.
std::string AsFlag(int64_t bytes) { return fmt::format("{}M", (bytes + 999'999) / 1'000'000); }

}  // namespace

StatusOr<PlanOptions> FindFit(const PlanOptions& options, int64_t budget_bytes) {
  PlanOptions least_options;
  int64_t least_bytes = 0;
  for (const Choice& choice : Choices(options)) {
    const PlanOptions tried = With(options, choice);
    ZG_ASSIGN_OR_RETURN(const JobPlan plan, PlanModel(tried));
    if (plan.peak_bytes <= budget_bytes) return tried;
    if (least_bytes != 0 && plan.peak_bytes >= least_bytes) continue;
    least_bytes = plan.peak_bytes;
    least_options = tried;
  }
  ZG_ASSIGN_OR_RETURN(const std::optional<int> ranks, RanksThatFit(least_options, budget_bytes));
  const std::string more_ranks =
      ranks.has_value()
          ? fmt::format(", or --ranks {} --zero 3 --batch {}", *ranks, least_options.batch)
          : fmt::format("; up to {} ranks do not help", kMaxRanksTried);
  return InvalidArgument(
      "--fit: nothing fits into {}: the least is {} per rank, with --ranks {} {}, {} too much; "
      "--fit {} would do{}",
      FormatBytes(budget_bytes), FormatBytes(least_bytes), options.ranks,
      ChoicesAsFlags(least_options), FormatBytes(least_bytes - budget_bytes), AsFlag(least_bytes),
      more_ranks);
}

}  // namespace zg::plan
