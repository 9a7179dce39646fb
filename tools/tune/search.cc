#include "tools/tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "framework/base/median.h"

namespace zg::tune {
namespace {

constexpr int kMaxRounds = 5;
constexpr double kHopeless = 1.25;   // factor relative to the fastest
constexpr int64_t kFirstSteps = 4;   // for a program whose step time is unknown
constexpr double kTrialMs = 1500;    // time of the steps of a trial, without the first
constexpr int64_t kMostSteps = 100;  // in a trial
constexpr double kMargin = 1.2;      // for estimates of time

class RunningSearch {
 public:
  RunningSearch(const Options& options, const Machinery& machinery)
      : options_(options), machinery_(machinery) {}

  StatusOr<Outcome> Run() {
    ZG_RETURN_IF_ERROR(FindWork());
    Candidates all = CandidatesFor(options_, outcome_.work);
    outcome_.left_out = std::move(all.left_out);
    num_candidates_ = all.candidates.size();
    ZG_RETURN_IF_ERROR(FirstRound(all.candidates));
    while (outcome_.rounds < kMaxRounds && NumHopeful() > 1 && HasTimeForRound()) {
      ZG_ASSIGN_OR_RETURN(const bool is_whole, Round());
      if (!is_whole) break;
    }
    SortByTime();
    return std::move(outcome_);
  }

 private:
  double SecondsLeft() const { return options_.seconds - machinery_.seconds_passed(); }

  // Based on the fastest steps so far, below which others will hardly be.
  int64_t StepsPerTrial() const {
    double best_ms = kTrialMs;
    for (const Tried& tried : outcome_.tried) best_ms = std::min(best_ms, tried.median_ms());
    if (outcome_.tried.empty()) return kFirstSteps;
    const auto steps = static_cast<int64_t>(std::lround(kTrialMs / std::max(best_ms, 1e-3)));
    return 1 + std::clamp<int64_t>(steps, kFirstSteps - 1, kMostSteps);
  }

  StatusOr<Trial> RunTrial(Tried* tried) {
    const double begin = machinery_.seconds_passed();
    machinery_.say(NameOf(tried->candidate));
    ZG_ASSIGN_OR_RETURN(Trial trial,
                        machinery_.run(tried->candidate, StepsPerTrial(), SecondsLeft()));
    tried->seconds = machinery_.seconds_passed() - begin;
    tried->peak_bytes = std::max(tried->peak_bytes, trial.peak_bytes);
    tried->step_ms.insert(tried->step_ms.end(), trial.step_ms.begin(), trial.step_ms.end());
    return trial;
  }

  // The first trial, with the program's own --batch and --micro-batches.
  Status FindWork() {
    ZG_ASSIGN_OR_RETURN(const Candidate first, FirstCandidate(options_));
    Tried tried = {first};
    const StatusOr<Trial> trial = RunTrial(&tried);
    if (!trial.ok()) {
      if (trial.status().code() == StatusCode::kDeadlineExceeded) return TooShort();
      if (trial.status().code() == StatusCode::kAborted) return trial.status();
      return trial.status().WithContext(
          fmt::format("{} with {}", options_.command[0], NameOf(first)));
    }
    outcome_.work = {first.ranks, trial->batch, trial->micro_batches};
    first_inputs_ = trial->inputs;
    outcome_.tried.push_back(std::move(tried));
    if (StepsPerTrial() < 2 * kFirstSteps) return Status::Ok();
    const StatusOr<Trial> longer = RunTrial(&outcome_.tried[0]);  // with as many steps as the
                                                                  // others
    if (longer.ok()) return Status::Ok();
    return longer.status().code() == StatusCode::kDeadlineExceeded ? TooShort() : longer.status();
  }

  Status TooShort() const {
    const double passed = machinery_.seconds_passed();
    if (outcome_.tried.empty()) {
      return FailedPrecondition(
          "--seconds: {:g} are too few for {} steps of {}; give more, or a smaller model",
          options_.seconds, kFirstSteps, options_.command[0]);
    }
    const double needed = passed / static_cast<double>(outcome_.tried.size()) *
                          static_cast<double>(num_candidates_) * kMargin;
    return FailedPrecondition(
        "--seconds: {:g} are too few to try {} ways once: {} took {:.1f} s; give at least {:.0f}, "
        "or try less with --ranks and --threads",
        options_.seconds, num_candidates_, outcome_.tried.size(), passed,
        std::ceil(std::max(needed, options_.seconds * kMargin)));
  }

  // Tries the candidates that have not been tried. Returns false if the time is over.
  StatusOr<bool> TryFirst(const Candidate& candidate) {
    if (SecondsLeft() <= 0) return false;
    Tried tried = {candidate};
    const StatusOr<Trial> trial = RunTrial(&tried);
    if (!trial.ok()) {
      if (trial.status().code() == StatusCode::kDeadlineExceeded) return false;
      if (trial.status().code() == StatusCode::kAborted) return trial.status();
      outcome_.left_out.push_back({NameOf(candidate), trial.status().message()});
      --num_candidates_;
      return true;
    }
    if (candidate.batch > 0 && candidate.batch != outcome_.work.batch &&
        trial->inputs == first_inputs_) {
      outcome_.left_out.push_back(
          {NameOf(candidate),
           fmt::format(
               "other work: the program does not follow --batch {}; give it --micro-batches "
               "that the ranks divide",
               candidate.batch)});
      --num_candidates_;
      return true;
    }
    outcome_.tried.push_back(std::move(tried));
    return true;
  }

  Status FirstRound(const std::vector<Candidate>& candidates) {
    for (size_t i = 1; i < candidates.size(); ++i) {
      ZG_ASSIGN_OR_RETURN(const bool is_tried, TryFirst(candidates[i]));
      if (!is_tried) return TooShort();
    }
    MarkHopeless();
    std::vector<Candidate> others;
    for (const Tried& tried : outcome_.tried) {
      if (tried.is_hopeless) continue;
      for (Candidate& other : WithOtherOverlaps(tried.candidate, options_)) {
        others.push_back(std::move(other));
      }
    }
    for (const Candidate& other : others) {
      ZG_ASSIGN_OR_RETURN(const bool is_tried, TryFirst(other));
      if (!is_tried)
        outcome_.left_out.push_back({NameOf(other), "no time was left; give more --seconds"});
    }
    MarkHopeless();
    outcome_.rounds = 1;
    return Status::Ok();
  }

  StatusOr<bool> Round() {
    for (Tried& tried : outcome_.tried) {
      if (tried.is_hopeless) continue;
      const StatusOr<Trial> trial = RunTrial(&tried);
      if (trial.ok()) continue;
      if (trial.status().code() == StatusCode::kDeadlineExceeded) return false;
      if (trial.status().code() == StatusCode::kAborted) return trial.status();
      outcome_.left_out.push_back({NameOf(tried.candidate), trial.status().message()});
      tried.has_failed = true;
    }
    std::vector<Tried>& tried = outcome_.tried;
    tried.erase(std::remove_if(tried.begin(), tried.end(),
                               [](const Tried& candidate) { return candidate.has_failed; }),
                tried.end());
    if (tried.empty()) return FailedPrecondition("{}", outcome_.left_out.back().why);
    MarkHopeless();
    ++outcome_.rounds;
    return true;
  }

  void MarkHopeless() {
    double best_ms = outcome_.tried[0].median_ms();
    for (const Tried& tried : outcome_.tried) best_ms = std::min(best_ms, tried.median_ms());
    for (Tried& tried : outcome_.tried)
      tried.is_hopeless |= tried.median_ms() > kHopeless * best_ms;
  }

  int64_t NumHopeful() const {
    return std::count_if(outcome_.tried.begin(), outcome_.tried.end(),
                         [](const Tried& tried) { return !tried.is_hopeless; });
  }

  bool HasTimeForRound() const {
    double seconds = 0;
    for (const Tried& tried : outcome_.tried) seconds += tried.is_hopeless ? 0 : tried.seconds;
    return seconds * kMargin < SecondsLeft();
  }

  void SortByTime() {
    std::stable_sort(outcome_.tried.begin(), outcome_.tried.end(),
                     [](const Tried& a, const Tried& b) { return a.median_ms() < b.median_ms(); });
  }

  const Options& options_;
  const Machinery& machinery_;
  Outcome outcome_;
  std::string first_inputs_;
  size_t num_candidates_ = 1;
};

}  // namespace

double Tried::median_ms() const { return Median(step_ms); }

StatusOr<Outcome> Search(const Options& options, const Machinery& machinery) {
  return RunningSearch(options, machinery).Run();
}

}  // namespace zg::tune
