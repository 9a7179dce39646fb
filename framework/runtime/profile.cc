#include "framework/runtime/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "framework/base/format.h"
#include "framework/ir/scope_pattern.h"
#include "framework/passes/predict_traffic.h"

namespace zg {
namespace {

constexpr double kShortestMsForRates = 0.01;  // of a call
constexpr int kModuleDepth = 3;               // "blocks.3.attention"
constexpr size_t kMostModulesShown = 24;

double BillionsPerSecond(double amount, const ProfileRow& row) {
  const bool is_too_short = row.ms < kShortestMsForRates * static_cast<double>(row.calls);
  return row.ms <= 0 || is_too_short ? 0 : amount / row.ms / 1e6;
}

std::string RateText(double per_s) { return per_s > 0 ? fmt::format("{:.1f}", per_s) : "-"; }

std::string FirstColumn(std::string_view section, std::string_view what) {
  return fmt::format("  {:<8}  {}", section, what);
}

// The module of a node, down to a depth.
std::string_view ModuleOf(const ir::Node& node) {
  const std::string_view prefix = ScopePrefix(node.scope, kModuleDepth);
  return prefix.empty() ? std::string_view(node.scope) : prefix;
}

double& MsIn(ir::SectionKind section, ProfileModule* module) {
  switch (section) {
    case ir::SectionKind::kForward:
      return module->forward_ms;
    case ir::SectionKind::kBackward:
      return module->backward_ms;
    default:
      return module->update_ms;
  }
}

void Add(const ProfileModule& module, ProfileModule* sum) {
  sum->forward_ms += module.forward_ms;
  sum->backward_ms += module.backward_ms;
  sum->update_ms += module.update_ms;
}

}  // namespace

double ProfileRow::gflops_per_s() const { return BillionsPerSecond(flops, *this); }

double ProfileRow::gb_per_s() const { return BillionsPerSecond(bytes, *this); }

double Profile::between_nodes_ms() const {
  double ms = step_ms - feed_ms;
  for (const ProfileRow& row : rows) ms -= row.ms;
  return ms;
}

std::string ProfileTable(const Profile& profile) {
  std::vector<std::vector<std::string>> table = {
      {"  time per step of rank 0", "calls", "ms", "share", "GFLOP/s", "GB/s"}};
  const auto add = [&](std::string name, std::string calls, double ms) {
    table.push_back({std::move(name), std::move(calls), fmt::format("{:.3f}", ms),
                     FormatPercent(profile.Share(ms))});
  };
  for (const ProfileRow& row : profile.rows) {
    add(FirstColumn(row.section, row.op), fmt::format("{}", row.calls), row.ms);
    table.back().push_back(RateText(row.gflops_per_s()));
    table.back().push_back(RateText(row.gb_per_s()));
  }
  add(FirstColumn("", "setting inputs"), "", profile.feed_ms);
  add(FirstColumn("", "between nodes"), "", profile.between_nodes_ms());
  add(FirstColumn("", "whole step"), "", profile.step_ms);
  const std::string of = !profile.is_warm ? "of the first step, which warms up; there was no other"
                                          : fmt::format("mean of the {} after the first",
                                                        Counted(profile.steps, "step"));
  return FormatTable(table) +
         fmt::format("  {}; collectives include waiting for other ranks\n", of);
}

std::string ProfileModuleTable(const Profile& profile) {
  std::vector<std::vector<std::string>> table = {
      {"  by module", "forward", "backward", "update", "ms", "share"}};
  const auto add = [&](const std::string& name, const ProfileModule& module) {
    table.push_back({"  " + name});
    for (const double ms : {module.forward_ms, module.backward_ms, module.update_ms, module.ms()}) {
      table.back().push_back(fmt::format("{:.3f}", ms));
    }
    table.back().push_back(FormatPercent(profile.Share(module.ms())));
  };
  ProfileModule all;
  ProfileModule others;
  for (size_t i = 0; i < profile.modules.size(); ++i) {
    const ProfileModule& module = profile.modules[i];
    Add(module, &all);
    if (i < kMostModulesShown) {
      add(module.module.empty() ? "(no module)" : module.module, module);
    } else {
      Add(module, &others);
    }
  }
  if (profile.modules.size() > kMostModulesShown) {
    add(fmt::format("({} others)", profile.modules.size() - kMostModulesShown), others);
  }
  add("all nodes", all);
  return FormatTable(table);
}

std::string LocalTypesText(const ir::Graph& graph, const ir::Node& node) {
  const auto list = [&](const std::vector<ir::Value*>& values) {
    std::string text;
    for (const ir::Value* value : values) {
      text += (text.empty() ? "" : ", ") + graph.LocalType(*value).ToString();
    }
    return text;
  };
  return fmt::format("{} -> {}", list(node.inputs), list(node.outputs));
}

int64_t LocalBytes(const ir::Graph& graph, const ir::Node& node) {
  int64_t bytes = 0;
  for (const ir::Value* input : node.inputs) bytes += graph.LocalType(*input).bytes();
  for (const ir::Value* output : node.outputs) bytes += graph.LocalType(*output).bytes();
  return bytes;
}

int64_t ThreadProcessorNanoseconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Profiler::AddNode(int index, const ir::Graph& graph, const ir::Node& node) {
  MeasuredNode measured;
  measured.node = &node;
  if (node.op->flops != nullptr) measured.flops = node.op->flops(node.LocalCall(graph.mesh()));
  measured.types = LocalTypesText(graph, node);
  measured.bytes = LocalBytes(graph, node);
  nodes_.resize(std::max(nodes_.size(), static_cast<size_t>(index) + 1));
  if (ir::MovesData(node)) transfers_[&node] = {measured.types, SentBytes(graph, node)};
  nodes_[index] = std::move(measured);
}

void Profiler::KeepTimeline(int64_t num_steps, int64_t slices_per_step,
                            int64_t transfers_per_step) {
  timeline_steps_ = num_steps;
  timeline_.steps.reserve(num_steps);
  timeline_.slices.reserve(num_steps * slices_per_step);
  transfers_to_keep_ = num_steps * transfers_per_step;
  timeline_.transfers.reserve(transfers_to_keep_);
}

void Profiler::BeginStep(int64_t step) {
  if (steps_ended_ == 1) {
    step_ns_ = feed_ns_ = 0;
    for (MeasuredNode& node : nodes_) node.calls = node.ns = 0;
  }
  step_ = step;
  keeps_slices_ = steps_ended_ < timeline_steps_;
  step_begin_ = Now();
}

void Profiler::EndStep() {
  const int64_t end = Now();
  step_ns_ += end - step_begin_;
  ++steps_ended_;
  if (keeps_slices_) timeline_.steps.push_back({step_, step_begin_, end});
  keeps_slices_ = false;
}

void Profiler::EndFeed(int64_t begin) {
  const int64_t end = Now();
  feed_ns_ += end - begin;
  if (keeps_slices_) timeline_.slices.push_back({nullptr, begin, end});
}

void Profiler::EndNode(int index, int64_t begin) {
  const int64_t end = Now();
  MeasuredNode& measured = nodes_[index];
  measured.ns += end - begin;
  ++measured.calls;
  if (keeps_slices_) timeline_.slices.push_back({measured.node, begin, end});
}

void Profiler::EndTransfer(const ir::Node& node, int64_t step, const TransferBegin& begin) {
  const int64_t end = Now();
  {
    const std::lock_guard<std::mutex> lock(transfers_mutex_);
    if (step != transfers_step_ && ++transfers_steps_ == 2) {
      for (auto& [of, measured] : transfers_) {
        measured.calls = measured.ns = measured.processor_ns = 0;
      }
    }
    transfers_step_ = step;
    MeasuredTransfer& measured = transfers_.at(&node);
    ++measured.calls;
    measured.ns += end - begin.ns;
    measured.processor_ns += ThreadProcessorNanoseconds() - begin.processor_ns;
  }
  if (static_cast<int64_t>(timeline_.transfers.size()) == transfers_to_keep_) return;
  timeline_.transfers.push_back({&node, begin.ns, end});
}

std::vector<ProfileTransfers> Profiler::ResultOfTransfers(int64_t steps) const {
  const std::lock_guard<std::mutex> lock(transfers_mutex_);
  std::map<std::tuple<ir::SectionKind, std::string, std::string>, ProfileTransfers> by_types;
  for (const auto& [node, measured] : transfers_) {
    if (measured.calls == 0) continue;
    ProfileTransfers& same = by_types[{node->section->kind, node->op->name, measured.types}];
    same.op = node->op->name;
    same.section = ir::SectionKindName(node->section->kind);
    same.types = measured.types;
    const int64_t calls = measured.calls / steps;
    same.calls += calls;
    same.ms += static_cast<double>(measured.ns / steps) / 1e6;
    same.processor_ms += static_cast<double>(measured.processor_ns / steps) / 1e6;
    same.bytes += static_cast<double>(calls * measured.bytes);
  }
  std::vector<ProfileTransfers> transfers;
  for (auto& [key, same] : by_types) transfers.push_back(std::move(same));
  return transfers;
}

std::optional<Profile> Profiler::Result() const {
  if (steps_ended_ == 0) return std::nullopt;
  Profile profile;
  profile.is_warm = steps_ended_ > 1;
  profile.steps = profile.is_warm ? steps_ended_ - 1 : 1;
  const auto steps = static_cast<double>(profile.steps);
  profile.step_ms = static_cast<double>(step_ns_) / steps / 1e6;
  profile.feed_ms = static_cast<double>(feed_ns_) / steps / 1e6;
  std::map<std::pair<ir::SectionKind, std::string>, ProfileRow> rows;
  std::map<std::tuple<ir::SectionKind, std::string, std::string>, ProfileCalls> all_calls;
  std::map<std::string_view, ProfileModule> modules;
  for (const MeasuredNode& measured : nodes_) {
    if (measured.calls == 0 || measured.node->section->kind == ir::SectionKind::kEval) continue;
    const ir::SectionKind section = measured.node->section->kind;
    ProfileRow& row = rows[{section, measured.node->op->name}];
    row.op = measured.node->op->name;
    row.section = ir::SectionKindName(section);
    const int64_t calls = measured.calls / profile.steps;
    const double ms = static_cast<double>(measured.ns) / steps / 1e6;
    row.calls += calls;
    row.ms += ms;
    row.flops += static_cast<double>(calls * measured.flops);
    row.bytes += static_cast<double>(calls * measured.bytes);
    ProfileCalls& same = all_calls[{section, row.op, measured.types}];
    same.op = row.op;
    same.section = row.section;
    same.types = measured.types;
    same.calls += calls;
    same.ms += ms;
    same.flops += static_cast<double>(calls * measured.flops);
    same.bytes += static_cast<double>(calls * measured.bytes);
    ProfileModule& module = modules[ModuleOf(*measured.node)];
    module.module = ModuleOf(*measured.node);
    MsIn(section, &module) += ms;
  }
  for (auto& [key, row] : rows) profile.rows.push_back(std::move(row));
  std::stable_sort(profile.rows.begin(), profile.rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.ms > b.ms; });
  for (auto& [key, calls] : all_calls) profile.calls.push_back(std::move(calls));
  profile.transfers = ResultOfTransfers(profile.steps);
  for (auto& [key, module] : modules) profile.modules.push_back(std::move(module));
  std::stable_sort(profile.modules.begin(), profile.modules.end(),
                   [](const ProfileModule& a, const ProfileModule& b) { return a.ms() > b.ms(); });
  return profile;
}

}  // namespace zg
