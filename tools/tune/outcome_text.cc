#include "tools/tune/outcome_text.h"

#include <fmt/format.h>

#include <vector>

#include "framework/base/format.h"

namespace zg::tune {

std::string OutcomeText(const Outcome& outcome, const Options& options, double seconds) {
  const int64_t samples = outcome.work.samples();
  std::vector<std::vector<std::string>> rows = {{"  ranks", "threads", "overlap", "batch",
                                                 "micro-batches", "ms per step", "samples/s",
                                                 "memory of a rank", "steps"}};
  for (const Tried& tried : outcome.tried) {
    const Candidate& candidate = tried.candidate;
    const Work& work = outcome.work;
    rows.push_back(
        {fmt::format("  {}", candidate.ranks), fmt::format("{}", candidate.threads),
         candidate.overlap.empty() ? "-" : candidate.overlap,
         fmt::format("{}", candidate.batch > 0 ? candidate.batch : work.batch),
         fmt::format("{}", candidate.batch > 0 ? candidate.micro_batches : work.micro_batches),
         fmt::format("{:.1f}", tried.median_ms()),
         fmt::format("{:.1f}", 1e3 * static_cast<double>(samples) / tried.median_ms()),
         FormatBytes(tried.peak_bytes), fmt::format("{}", tried.step_ms.size())});
  }
  std::string text = fmt::format("{} samples per step on {}; {} in {:.0f} s\n{}", samples,
                                 Counted(options.cores, "core"), Counted(outcome.rounds, "round"),
                                 seconds, FormatTable(rows));
  for (const LeftOut& left_out : outcome.left_out) {
    text += fmt::format("  left out: {}: {}\n", left_out.what, left_out.why);
  }
  return text + fmt::format("\n{}\n", ShellText(CommandOf(outcome.tried[0].candidate, options)));
}

}  // namespace zg::tune
