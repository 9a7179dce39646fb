#include "tools/plan/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "framework/base/format.h"
#include "tools/plan/fit_candidates.h"
#include "tools/plan/fit_estimate.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

constexpr int kMaxRanksTried = 1024;
constexpr int kMaxCompiled = 20;
// The minimum improvement of a point of the front over its neighbours.
constexpr double kLessMemory = 0.05;
constexpr double kLessTime = 0.01;
// The possible error of memory estimates; candidates that might be that much better are compiled.
constexpr double kUncertain = 0.05;

struct Entry {
  PlanOptions options;
  double bytes = 0;  // of the plan, or the lowest by its estimate
  double step_ms = 0;
  std::unique_ptr<JobPlan> plan;
  std::optional<StatusOr<JobPlan>> plan_ahead;  // compiled, but not counted or looked at yet
};

class Search {
 public:
  Search(const PlanOptions& options, int64_t budget_bytes)
      : budget_bytes_(static_cast<double>(budget_bytes)) {
    FitEstimator estimator;
    for (PlanOptions& candidate : FitCandidates(options)) {
      const std::optional<FitEstimate> estimate = estimator.Estimate(candidate);
      if (!estimate.has_value()) continue;
      entries_.push_back({std::move(candidate), estimate->peak_bytes * (1 - kUncertain),
                          estimate->step_ms, nullptr, std::nullopt});
    }
  }

  int num_candidates() const { return static_cast<int>(entries_.size()); }
  int num_compiled() const { return num_compiled_; }

  // Compiles the candidates on the front, starting with those farthest from compiled ones.
  void Run() {
    while (num_compiled_ < kMaxCompiled) {
      const std::vector<Entry*> next = FarthestFromCompiled(Front(/*compiled_only=*/false));
      if (next.empty()) return;
      Compile(next);
    }
  }

  // Fastest first.
  std::vector<Entry*> Front(bool compiled_only) {
    std::vector<Entry*> sorted;
    for (Entry& entry : entries_) {
      if (compiled_only && entry.plan == nullptr) continue;
      if (entry.bytes <= budget_bytes_) sorted.push_back(&entry);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const Entry* a, const Entry* b) {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->step_ms < b->step_ms;
    });
    std::vector<Entry*> faster;  // those that are also faster, from the smallest on
    for (Entry* entry : sorted) {
      if (faster.empty() || entry->step_ms < faster.back()->step_ms * (1 - kLessTime)) {
        faster.push_back(entry);
      }
    }
    std::vector<Entry*> front;
    for (auto entry = faster.rbegin(); entry != faster.rend(); ++entry) {
      if (front.empty() || (*entry)->bytes < front.back()->bytes * (1 - kLessMemory)) {
        front.push_back(*entry);
      }
    }
    return front;
  }

  // The candidate that needs the least memory, compiled; null: none can be compiled.
  const Entry* Least() {
    for (int tries = 0; tries < kMaxCompiled; ++tries) {
      const auto least =
          std::min_element(entries_.begin(), entries_.end(),
                           [](const Entry& a, const Entry& b) { return a.bytes < b.bytes; });
      if (least == entries_.end()) return nullptr;
      if (least->plan != nullptr) return &*least;
      Compile({&*least});
    }
    return nullptr;
  }

 private:
  // Compiles the first of `next`, and with it, in a thread of its own, the second: it is likely to be
  // the first of the next call, and what is found does not depend on it. Removes the first if it does
  // not compile.
  void Compile(const std::vector<Entry*>& next) {
    ++num_compiled_;
    Entry* const entry = next[0];
    if (!entry->plan_ahead.has_value()) {
      std::future<StatusOr<JobPlan>> ahead;
      if (next.size() > 1 && !next[1]->plan_ahead.has_value()) {
        ahead = std::async(std::launch::async, [&] { return PlanModel(next[1]->options); });
      }
      entry->plan_ahead = PlanModel(entry->options);
      if (ahead.valid()) next[1]->plan_ahead = ahead.get();
    }
    StatusOr<JobPlan> plan = *std::exchange(entry->plan_ahead, std::nullopt);
    if (!plan.ok()) {
      entries_.erase(entries_.begin() + (entry - entries_.data()));
      return;
    }
    entry->bytes = static_cast<double>(plan->peak_bytes);
    entry->step_ms = plan->time.step_ms();
    entry->plan = std::make_unique<JobPlan>(std::move(*plan));
  }

  // Distance in memory. The second is the farthest one if the first needs what is estimated. None: the
  // whole front is compiled.
  std::vector<Entry*> FarthestFromCompiled(const std::vector<Entry*>& front) const {
    std::vector<const Entry*> compiled;
    for (const Entry& entry : entries_) {
      if (entry.plan != nullptr) compiled.push_back(&entry);
    }
    std::vector<Entry*> chosen;
    while (chosen.size() < 2) {
      Entry* farthest = nullptr;
      double most = -1;
      for (Entry* entry : front) {
        if (std::count(compiled.begin(), compiled.end(), entry) != 0) continue;
        double distance = std::numeric_limits<double>::infinity();
        for (const Entry* other : compiled) {
          distance = std::min(distance, std::abs(std::log(entry->bytes / other->bytes)));
        }
        if (distance <= most) continue;
        farthest = entry;
        most = distance;
      }
      if (farthest == nullptr) break;
      chosen.push_back(farthest);
      compiled.push_back(farthest);
    }
    return chosen;
  }

  double budget_bytes_;
  std::vector<Entry> entries_;
  int num_compiled_ = 0;
};

// The smallest number of ranks, doubling those of `options`, with which its micro-batch fits at
// stage 3.
StatusOr<std::optional<int>> RanksThatFit(PlanOptions options, int64_t budget_bytes) {
  options.compile.zero.set_stage(3);
  options.compile.mesh.clear();
  options.compile.placement.clear();
  options.compile.micro_batches = options.ranks;
  while (options.ranks * 2 <= kMaxRanksTried) {
    options.ranks *= 2;
    options.compile.micro_batches *= 2;
    ZG_ASSIGN_OR_RETURN(const JobPlan plan, PlanModel(options));
    if (plan.peak_bytes <= budget_bytes) return std::optional<int>(options.ranks);
  }
  return std::optional<int>();
}

// A size that --fit accepts and that is not smaller: whole megabytes.
std::string AsFlag(int64_t bytes) { return fmt::format("{}M", (bytes + 999'999) / 1'000'000); }

Status NothingFits(const PlanOptions& options, int64_t budget_bytes, const Entry& least) {
  ZG_ASSIGN_OR_RETURN(const std::optional<int> ranks, RanksThatFit(least.options, budget_bytes));
  const std::string more_ranks =
      ranks.has_value()
          ? fmt::format(", or --ranks {} --zero 3 --batch {}", *ranks, least.options.batch)
          : fmt::format("; up to {} ranks do not help", kMaxRanksTried);
  const int64_t least_bytes = least.plan->peak_bytes;
  return InvalidArgument(
      "--fit: nothing fits into {}: the least is {} per rank, with --ranks {} {}, {} too much; "
      "--fit {} would do{}",
      FormatBytes(budget_bytes), FormatBytes(least_bytes), options.ranks,
      ChoicesAsFlags(least.options), FormatBytes(least_bytes - budget_bytes), AsFlag(least_bytes),
      more_ranks);
}

}  // namespace

StatusOr<FitFront> FindFront(const PlanOptions& options, int64_t budget_bytes) {
  Search search(options, budget_bytes);
  search.Run();
  FitFront front;
  front.num_candidates = search.num_candidates();
  for (Entry* entry : search.Front(/*compiled_only=*/true)) {
    front.points.push_back({entry->options, std::move(*entry->plan)});
  }
  front.num_compiled = search.num_compiled();
  if (!front.points.empty()) return front;
  const Entry* least = search.Least();
  if (least == nullptr) return PlanModel(options).status();  // reports the problem of all of them
  return NothingFits(options, budget_bytes, *least);
}

std::string FrontText(const FitFront& front, int64_t budget_bytes) {
  std::vector<std::vector<std::string>> rows = {{"    peak", "time per step", "between hosts",
                                                 "mesh", "zero", "batch", "micro-batches",
                                                 "recompute"}};
  std::string commands;
  for (size_t i = 0; i < front.points.size(); ++i) {
    const PlanOptions& options = front.points[i].options;
    const JobPlan& plan = front.points[i].plan;
    int64_t host_bytes = 0;
    for (const AxesTraffic& along : plan.traffic_of_axes) host_bytes += along.host_bytes;
    const ZeroOptions& zero = options.compile.zero;
    rows.push_back({fmt::format("{:>2}  {}", i + 1, FormatBytes(plan.peak_bytes)),
                    fmt::format("{:.3f} s", plan.time.step_ms() / 1000), FormatBytes(host_bytes),
                    options.compile.MeshOf(options.ranks).ToString(),
                    zero.secondary_axis.empty()
                        ? zero.stages_text()
                        : fmt::format("{} ({})", zero.stages_text(), zero.secondary_axis),
                    fmt::to_string(options.batch), fmt::to_string(options.compile.micro_batches),
                    options.compile.recompute.empty() ? "no" : options.compile.recompute[0]});
    commands += fmt::format("  {:>2}  {}\n", i + 1, CommandOf(options));
  }
  return fmt::format(
             "{} to fit into {}, from the fastest to the smallest ({} estimated, {} "
             "compiled):\n",
             Counted(front.points.size(), "way"), FormatBytes(budget_bytes), front.num_candidates,
             front.num_compiled) +
         FormatTable(rows) + "\n" + commands + "\n";
}

}  // namespace zg::plan
