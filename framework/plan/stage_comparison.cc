#include "framework/plan/stage_comparison.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "framework/base/format.h"

namespace zg::plan {
namespace {

// The largest buffer at the peak of `higher` that the peak of `lower` does not have.
const PlannedBuffer* ReasonFor(const JobPlan& higher, const JobPlan& lower) {
  std::map<std::string, int64_t> known;  // bytes by name
  for (const PlannedBuffer& buffer : lower.peak_alive) known[buffer.name] += buffer.bytes;
  const PlannedBuffer* reason = nullptr;
  int64_t most = 0;
  for (const PlannedBuffer& buffer : higher.peak_alive) {
    const auto found = known.find(buffer.name);
    const int64_t added = buffer.bytes - (found == known.end() ? 0 : found->second);
    if (added <= most) continue;
    most = added;
    reason = &buffer;
  }
  return reason;
}

std::vector<std::string> WarnOfHigherStages(const std::vector<JobPlan>& plans) {
  std::vector<std::string> warnings;
  const JobPlan* least = nullptr;
  for (const JobPlan& plan : plans) {
    if (!plan.options.zero.stage_rules.empty()) continue;
    if (least != nullptr && plan.peak_bytes > least->peak_bytes) {
      std::string warning = fmt::format(
          "stage {} needs {} more than stage {}", plan.options.zero.stages_text(),
          FormatBytes(plan.peak_bytes - least->peak_bytes), least->options.zero.stages_text());
      if (const PlannedBuffer* reason = ReasonFor(plan, *least)) {
        warning += fmt::format(": its peak holds %{} ({}, {}), which that of stage {} does not",
                               reason->name, MemoryCategoryName(reason->category),
                               FormatBytes(reason->bytes), least->options.zero.stages_text());
      }
      const int communication = static_cast<int>(MemoryCategory::kCommunication);
      if (plan.category_bytes[communication] > 0) warning += "; smaller buckets may help";
      warnings.push_back(std::move(warning));
    }
    if (least == nullptr || plan.peak_bytes < least->peak_bytes) least = &plan;
  }
  return warnings;
}

}  // namespace

StageComparison CompareStages(std::vector<JobPlan> plans) {
  StageComparison comparison;
  comparison.warnings = WarnOfHigherStages(plans);
  comparison.plans = std::move(plans);
  return comparison;
}

}  // namespace zg::plan
