#include "framework/plan/overlap_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "framework/base/format.h"
#include "framework/passes/compile_options.h"

namespace zg::plan {
namespace {

// As good as predictions are (models/README.md).
constexpr double kAsFast = 1.05;

}  // namespace

size_t BestOverlap(const std::vector<OverlapChoice>& tried) {
  const auto fastest = std::min_element(
      tried.begin(), tried.end(),
      [](const OverlapChoice& a, const OverlapChoice& b) { return a.step_ms < b.step_ms; });
  size_t best = fastest - tried.begin();
  for (size_t i = 0; i < tried.size(); ++i) {
    if (tried[i].step_ms > kAsFast * fastest->step_ms) continue;
    if (std::tie(tried[i].peak_bytes, tried[i].max_bytes) <
        std::tie(tried[best].peak_bytes, tried[best].max_bytes)) {
      best = i;
    }
  }
  return best;
}

std::string OverlapLimitText(int64_t max_bytes) {
  if (max_bytes == 0) return "off";
  return max_bytes == CompileOptions::kUnlimitedBytes ? "unlimited" : FormatBytes(max_bytes);
}

std::string OverlapTable(const OverlapChoices& choices) {
  std::vector<std::vector<std::string>> rows = {{"  overlap", "step", "memory"}};
  for (size_t i = 0; i < choices.tried.size(); ++i) {
    const OverlapChoice& choice = choices.tried[i];
    rows.push_back({fmt::format("  {}{}", OverlapLimitText(choice.max_bytes),
                                i == choices.chosen ? " (chosen)" : ""),
                    fmt::format("{:.1f} ms", choice.step_ms), FormatBytes(choice.peak_bytes)});
  }
  return FormatTable(rows);
}

}  // namespace zg::plan
