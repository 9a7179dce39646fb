#include "framework/plan/text_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/base/format.h"
#include "framework/plan/buffer_groups.h"

namespace zg::plan {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kGroupsShown = 12;
constexpr size_t kTensorsShown = 3;

std::string Milliseconds(double ms) {
  return ms < 1000 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.2f} s", ms / 1000);
}

std::string Header(const PlanReport& report) {
  const JobPlan& plan = report.plan;
  const CompileOptions& options = plan.options;
  std::string text = fmt::format("{}; {} parameters\n", plan.description,
                                 FormatCount(static_cast<double>(plan.num_parameters)));
  if (report.fit_bytes.has_value()) {
    text += fmt::format("fits into {}: {}\n", FormatBytes(*report.fit_bytes), report.fit_choices);
  }
  text += fmt::format("{} ranks, ZeRO stage {}, {} micro-batches per step, {}\n", plan.ranks,
                      options.zero.stages_text(), options.micro_batches, DTypeName(options.dtype));
  if (!plan.inputs.empty()) text += fmt::format("a micro-batch: {}\n", plan.inputs);
  return text;
}

std::string Memory(const JobPlan& plan) {
  Rows rows = {{"  memory per rank", "at most"}};
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    rows.push_back({fmt::format("  {}", MemoryCategoryName(static_cast<MemoryCategory>(i))),
                    FormatBytes(plan.category_bytes[i])});
  }
  rows.push_back({"  peak", FormatBytes(plan.peak_bytes)});
  rows.push_back({"  lower bound", FormatBytes(plan.lower_bound_bytes)});
  return FormatTable(rows) + fmt::format("  peak / lower bound = {:.4f}\n", plan.ratio()) +
         fmt::format("  of the activations, backward reads {} that forward computed\n",
                     FormatBytes(plan.kept_bytes)) +
         fmt::format(
             "  beside it, saving while training goes on takes {}, and what a step hands out {}\n",
             FormatBytes(plan.saving_bytes), FormatBytes(plan.result_bytes));
}

std::string Peak(const JobPlan& plan) {
  const ScheduledNode& node = plan.schedule[plan.peak];
  std::string text =
      fmt::format("  most bytes are alive, {}, in {} (node {} of {}): {} %{}{}\n",
                  FormatBytes(node.alive_bytes), node.section, plan.peak + 1, plan.schedule.size(),
                  node.op, node.value, node.scope.empty() ? "" : " of " + node.scope);
  Rows rows = {{"  alive then", "category", "buffers", "bytes"}};
  const std::vector<BufferGroup> groups = GroupBuffers(plan.peak_alive);
  BufferGroup rest;
  for (size_t i = 0; i < groups.size(); ++i) {
    const BufferGroup& group = groups[i];
    if (i >= kGroupsShown) {
      rest.count += group.count;
      rest.bytes += group.bytes;
      continue;
    }
    rows.push_back({fmt::format("  %{}", group.name),
                    std::string(MemoryCategoryName(group.category)), fmt::format("{}", group.count),
                    FormatBytes(group.bytes)});
  }
  if (rest.count > 0) {
    rows.push_back(
        {"  and smaller ones", "", fmt::format("{}", rest.count), FormatBytes(rest.bytes)});
  }
  return text + FormatTable(rows);
}

// If ranks communicate along several axes, or between hosts.
std::string AxesTable(const JobPlan& plan) {
  if (plan.traffic_of_axes.size() < 2 && plan.machine.ranks_per_host == 0) return "";
  Rows rows = {{"  along the mesh axes", "messages", "bytes", "between hosts"}};
  for (const AxesTraffic& along : plan.traffic_of_axes) {
    rows.push_back({fmt::format("  {}", along.axes), fmt::format("{}", along.messages),
                    FormatBytes(along.bytes), FormatBytes(along.host_bytes)});
  }
  return FormatTable(rows);
}

// How much of the communication is hidden, and why the rest is not. The reasons follow the table.
std::string TransfersTable(const JobPlan& plan) {
  Rows rows = {{"  sending", "op", "calls", "bytes", "ms", "hidden", "holds"}};
  std::vector<std::string> reasons = {"not hidden because"};
  for (const PlannedTransfer& group : GroupTransfers(plan.transfers)) {
    rows.push_back({"  in " + group.section, group.op, fmt::format("{}", group.calls),
                    FormatBytes(group.bytes), fmt::format("{:.1f}", group.ms),
                    fmt::format("{:.1f}", group.hidden_ms), FormatBytes(group.held_bytes)});
    reasons.push_back(group.reason);
  }
  const std::string table = FormatTable(rows);
  std::string text;
  size_t begin = 0;
  for (const std::string& reason : reasons) {
    const size_t end = table.find('\n', begin);
    text += table.substr(begin, end - begin) + (reason.empty() ? "" : "  " + reason) + "\n";
    begin = end + 1;
  }
  if (plan.races.transfers > 0) {
    text += fmt::format(
        "  no races: proved in {:.0f} ms for {} transfers ahead, against {} accesses beside them\n",
        plan.races.ms, plan.races.transfers, plan.races.accesses);
  }
  return text;
}

// "computing at 100 GFLOP/s", or by prices.
std::string Computing(const JobPlan& plan) {
  const std::string by_flops = fmt::format("at {} GFLOP/s", plan.machine.gflops);
  if (!plan.priced) return "computing " + by_flops;
  const PricedComputation& priced = *plan.priced;
  const std::string unpriced =
      priced.unpriced.empty()
          ? ""
          : fmt::format("; {}, not measured there, {}", fmt::join(priced.unpriced, ", "), by_flops);
  return fmt::format(
      "computing by the prices of {} ({} of it for shapes that were measured{})",
      plan.machine.prices->source(),
      FormatPercent(priced.compute_ms > 0 ? priced.same_types_ms / priced.compute_ms : 0),
      unpriced);
}

// "0.3 ms sending at 10 GB/s, 0.1 ms in latencies of 10 us", or by prices.
std::string Sending(const JobPlan& plan) {
  const Machine& machine = plan.machine;
  const TimeEstimate& time = plan.time;
  if (plan.priced_transfers) {
    const PricedTransfers& priced = *plan.priced_transfers;
    return fmt::format("{} sending by those prices ({} of it for transfers that were measured)",
                       Milliseconds(priced.ms),
                       FormatPercent(priced.ms > 0 ? priced.same_types_ms / priced.ms : 0));
  }
  const std::string between_hosts =
      machine.ranks_per_host == 0
          ? ""
          : fmt::format(", {} between hosts at {} GB/s", Milliseconds(time.host_transfer_ms),
                        machine.host_bandwidth_gb_s);
  return fmt::format("{} sending at {} GB/s{}, {} in latencies of {} us",
                     Milliseconds(time.transfer_ms), machine.bandwidth_gb_s, between_hosts,
                     Milliseconds(time.latency_ms), machine.latency_us);
}

std::string TrafficAndTime(const JobPlan& plan) {
  std::string text;
  if (plan.traffic.empty()) {
    text = "  nothing is sent between ranks\n";
  } else {
    Rows rows = {{"  sent per rank and step", "calls", "bytes"}};
    for (const auto& [op, traffic] : plan.traffic) {
      rows.push_back(
          {fmt::format("  {}", op), fmt::format("{}", traffic.count), FormatBytes(traffic.bytes)});
    }
    text = FormatTable(rows) + AxesTable(plan) + TransfersTable(plan);
  }
  const std::string hidden = plan.time.hidden_ms == 0
                                 ? ""
                                 : fmt::format("; {} of the sending hidden beside computing",
                                               Milliseconds(plan.time.hidden_ms));
  const std::string slowed = plan.time.slowed_ms == 0
                                 ? ""
                                 : fmt::format(", which takes {} of the computation's processors",
                                               Milliseconds(plan.time.slowed_ms));
  return text +
         fmt::format(
             "\n  {}FLOP per rank and step; about {} per step:\n  {} {}, {} {} {} kernels, {}{}{}\n",
             FormatCount(plan.flops), Milliseconds(plan.time.step_ms()),
             Milliseconds(plan.time.compute_ms), Computing(plan), Milliseconds(plan.time.start_ms),
             plan.priced ? "between" : "starting", FormatCount(static_cast<double>(plan.kernels)),
             Sending(plan), hidden, slowed);
}

std::string Whole(const JobPlan& plan) {
  if (plan.ranks == 1) return "  one rank: there is nothing to shard\n";
  if (plan.replicated.empty()) return "  nothing is whole on every rank\n";
  std::string text = "  whole on every rank:\n";
  for (const Replicated& replicated : plan.replicated) {
    std::string tensors;
    for (size_t i = 0; i < std::min(replicated.tensors.size(), kTensorsShown); ++i) {
      tensors += (i == 0 ? "" : ", ") + replicated.tensors[i];
    }
    if (replicated.tensors.size() > kTensorsShown) {
      tensors += fmt::format(" and {} more", replicated.tensors.size() - kTensorsShown);
    }
    text += fmt::format("  {}, {}: {}\n    {}\n", MemoryCategoryName(replicated.category),
                        FormatBytes(replicated.bytes), replicated.reason, tensors);
  }
  return text;
}

// If ranks own whole tensors.
std::string Owners(const Owned& owned) {
  if (owned.tensors == 0) return "";
  return fmt::format(
      "  {} whole tensors in {} buckets have owners; the rank with most has {:.2f} times the mean "
      "in bytes, {:.2f} times in update flops\n",
      owned.tensors, owned.buckets, owned.bytes_imbalance, owned.flops_imbalance);
}

// If inputs have several sizes, or there are phases.
std::string VariantsTable(const JobPlan& plan) {
  const Variant& first = plan.variants.back().variant;
  Rows rows = {{first.size != 0 ? "  size of the inputs" : "  phase", "peak", "FLOP", "time"}};
  for (const VariantPlan& one : plan.variants) {
    const std::string name =
        one.variant.size != 0 ? fmt::to_string(one.variant.size) : one.variant.phase;
    rows.push_back({"  " + name, FormatBytes(one.peak_bytes), FormatCount(one.flops),
                    Milliseconds(one.step_ms)});
  }
  return FormatTable(rows) + fmt::format("  everything else here is of {}\n", first.ToString());
}

std::string Stages(const StageComparison& stages) {
  Rows rows = {{"  stage"}};
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    rows[0].emplace_back(MemoryCategoryName(static_cast<MemoryCategory>(i)));
  }
  for (const char* title : {"peak", "sent per step", "time"}) rows[0].emplace_back(title);
  for (const JobPlan& plan : stages.plans) {
    std::vector<std::string> row = {fmt::format("  {}", plan.options.zero.stages_text())};
    for (const int64_t bytes : plan.category_bytes) row.push_back(FormatBytes(bytes));
    row.push_back(FormatBytes(plan.peak_bytes));
    row.push_back(FormatBytes(plan.sent_bytes));
    row.push_back(Milliseconds(plan.time.step_ms()));
    rows.push_back(std::move(row));
  }
  std::string text = FormatTable(rows);
  for (const std::string& warning : stages.warnings) text += "  warning: " + warning + "\n";
  return text;
}

}  // namespace

std::string TextReport(const PlanReport& report) {
  const JobPlan& plan = report.plan;
  std::string text = Header(report) + "\n" + Memory(plan) + "\n" + Peak(plan) + "\n" +
                     TrafficAndTime(plan) + "\n" + Whole(plan) + Owners(plan.owned);
  if (!plan.variants.empty()) text += "\n" + VariantsTable(plan);
  if (!report.overlap.tried.empty()) text += "\n" + OverlapTable(report.overlap);
  if (report.stages.has_value()) text += "\n" + Stages(*report.stages);
  return text + fmt::format("\n  compiled in {}\n", Milliseconds(plan.compile_ms));
}

}  // namespace zg::plan
