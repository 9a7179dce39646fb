#include "framework/plan/html_report.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "framework/passes/assign_offsets.h"
#include "framework/plan/text_report.h"

namespace zg::plan {
namespace {

using Json = nlohmann::json;

// Rows are arrays, not objects: a large model has tens of thousands of them.
Json Slices(const std::vector<QueueSlice>& slices) {
  Json rows = Json::array();
  for (const QueueSlice& slice : slices) {
    rows.push_back({slice.node, slice.begin_ms, slice.end_ms});
  }
  return rows;
}

Json PageData(const PlanReport& report) {
  const JobPlan& plan = report.plan;
  Json categories = Json::array();
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    categories.push_back(std::string(MemoryCategoryName(static_cast<MemoryCategory>(i))));
  }
  Json nodes = Json::array();
  for (const ScheduledNode& node : plan.schedule) {
    nodes.push_back({node.section, node.op, node.value, node.scope, node.alive});
  }
  const int last_node = static_cast<int>(plan.schedule.size()) - 1;
  Json buffers = Json::array();
  for (const PlannedBuffer& buffer : plan.buffers) {
    const bool always = buffer.timeline == Lifetime::kAllTimelines;
    buffers.push_back({buffer.name, static_cast<int>(buffer.category), buffer.bytes,
                       always ? 0 : buffer.first, always ? last_node : buffer.last});
  }
  return {{"title", plan.description},           {"text", TextReport(report)},
          {"categories", std::move(categories)}, {"nodes", std::move(nodes)},
          {"buffers", std::move(buffers)},       {"peak_node", plan.peak},
          {"arena_bytes", plan.peak_bytes},      {"computing", Slices(plan.computing)},
          {"sending", Slices(plan.sending)}};
}

// Inside a script element no text may look like its end tag.
std::string EscapedForScript(std::string json) {
  for (size_t at = json.find("</"); at != std::string::npos; at = json.find("</", at + 3)) {
    json.insert(at + 1, "\\");
  }
  return json;
}

}  // namespace

std::string HtmlReport(const PlanReport& report) {
  constexpr std::string_view kPlaceholder = "%DATA%";
  std::string page = kHtmlPage;
  const std::string data =
      EscapedForScript(PageData(report).dump(-1, ' ', false, Json::error_handler_t::replace));
  return page.replace(page.find(kPlaceholder), kPlaceholder.size(), data);
}

}  // namespace zg::plan
