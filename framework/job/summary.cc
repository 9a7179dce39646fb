#include "framework/job/summary.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/base/format.h"

namespace zg {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string Difference(int64_t predicted, int64_t measured, std::string_view unit) {
  if (predicted == measured) return "=";
  return fmt::format("{:+} {}", measured - predicted, unit);
}

}  // namespace

std::string ConfigurationTable(const std::vector<ResolvedFlag>& config) {
  size_t width = 0;
  for (const ResolvedFlag& flag : config) width = std::max(width, flag.name.size());
  std::string table;
  for (const ResolvedFlag& flag : config) {
    const std::string value = FormatFlagValue(flag.value);
    if (!value.empty()) table += fmt::format("  {:<{}}  {}\n", flag.name, width, value);
  }
  return table;
}

std::string MemoryTable(const MemoryUse& predicted, const MemoryUse& measured) {
  Rows rows = {{"  memory per rank", "predicted", "measured", ""}};
  const auto add = [&](std::string_view name, int64_t predicted_bytes, int64_t measured_bytes) {
    rows.push_back({fmt::format("  {}", name), FormatBytes(predicted_bytes),
                    FormatBytes(measured_bytes), Difference(predicted_bytes, measured_bytes, "B")});
  };
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    add(MemoryCategoryName(static_cast<MemoryCategory>(i)), predicted.category_bytes[i],
        measured.category_bytes[i]);
  }
  add("peak", predicted.peak_bytes, measured.peak_bytes);
  return FormatTable(rows);
}

std::string TrafficTable(const TrafficCounters& predicted, const TrafficCounters& measured) {
  Rows rows = {{"  sent per rank and step", "calls", "predicted", "calls", "measured", ""}};
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    const Traffic& expected = predicted[i];
    const Traffic& actual = measured[i];
    if (expected.count == 0 && actual.count == 0) continue;
    const std::string difference = expected.bytes == actual.bytes
                                       ? Difference(expected.count, actual.count, "calls")
                                       : Difference(expected.bytes, actual.bytes, "B");
    rows.push_back({fmt::format("  {}", CollectiveName(static_cast<CollectiveKind>(i))),
                    fmt::format("{}", expected.count), FormatBytes(expected.bytes),
                    fmt::format("{}", actual.count), FormatBytes(actual.bytes), difference});
  }
  if (rows.size() == 1) return "  nothing is sent between ranks\n";
  return FormatTable(rows);
}

// What tells the parameters at the end from others.
std::string ParametersLine(const FinalState& state) {
  std::string text = fmt::format("  parameters  sum {:.9g}", state.param_sum);
  if (!state.param_sha256.empty()) {
    text += fmt::format(", sha256 {}", state.param_sha256.substr(0, 16));
  }
  return text + "\n";
}

std::string Summary(const Report& report) {
  // Nothing has been measured.
  if (report.steps.empty()) return "  no step was taken\n" + ParametersLine(report.final_state);
  std::string text =
      fmt::format("  loss        {:.6f} -> {:.6f} in {} steps\n", report.steps.front().loss,
                  report.steps.back().loss, report.steps.size());
  if (const int64_t skipped = report.final_state.skipped_updates; skipped > 0) {
    text += fmt::format("  skipped     {} updates that were not finite\n", skipped);
  }
  text += fmt::format("  speed       {:.2f} ms per step (median)", report.speed.ms_per_step_median);
  if (report.speed.tokens_per_s > 0) {
    text += fmt::format(", {} tokens/s", FormatCount(report.speed.tokens_per_s));
  }
  if (report.speed.flops_per_step > 0 && report.speed.ms_per_step_median > 0) {
    text += fmt::format(", {}FLOP/s per rank", FormatCount(report.speed.flops_per_step * 1000 /
                                                           report.speed.ms_per_step_median));
  }
  text += "\n" + ParametersLine(report.final_state);
  text += "\n" + MemoryTable(report.predicted_memory, report.measured_memory) + "\n";
  const bool is_as_planned =
      report.predicted_memory.category_bytes == report.measured_memory.category_bytes &&
      report.predicted_memory.peak_bytes == report.measured_memory.peak_bytes;
  if (!is_as_planned && !report.evals_not_run.empty()) {
    text += fmt::format("  measured without what has not run: eval {}\n",
                        fmt::join(report.evals_not_run, ", "));
  }
  text += TrafficTable(report.predicted_traffic, report.measured_traffic);
  for (const Profile& profile : report.profiles) {
    if (!profile.variant.is_only()) text += fmt::format("\n  {}\n", profile.variant.ToString());
    text += "\n" + ProfileTable(profile) + "\n" + ProfileModuleTable(profile);
  }
  if (report.saving_bytes > 0) {
    text += fmt::format("\n  host memory for saving, beside the arena: {}\n",
                        FormatBytes(report.saving_bytes));
  }
  if (report.rss_peak_bytes > 0) {
    text += fmt::format("\n  process of rank 0: {} resident at most\n",
                        FormatBytes(report.rss_peak_bytes));
  }
  if (report.device_library_bytes > 0) {
    text += fmt::format("  device of rank 0: {} of libraries and kernels beside the arena\n",
                        FormatBytes(report.device_library_bytes));
  }
  return text;
}

}  // namespace zg
