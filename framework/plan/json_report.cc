#include "framework/plan/json_report.h"

#include <nlohmann/json.hpp>

#include "framework/comm/communicator.h"

namespace zg::plan {
namespace {

using Json = nlohmann::ordered_json;

Json ConfigAsJson(const std::vector<ResolvedFlag>& config) {
  Json json = Json::object();
  for (const ResolvedFlag& flag : config) {
    std::visit([&](const auto& value) { json[flag.name] = value; }, flag.value);
  }
  return json;
}

// A number, or text if parameters have different stages.
Json StagesAsJson(const ZeroOptions& zero) {
  return zero.stage_rules.empty() ? Json(zero.stage) : Json(zero.stages_text());
}

Json MemoryAsJson(const JobPlan& plan) {
  Json json = Json::object();
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    json[std::string(MemoryCategoryName(static_cast<MemoryCategory>(i)))] = plan.category_bytes[i];
  }
  json["peak"] = plan.peak_bytes;
  return json;
}

Json TrafficAsJson(const JobPlan& plan) {
  Json json = Json::object();
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    const std::string name(CollectiveName(static_cast<CollectiveKind>(i)));
    const auto found = plan.traffic.find(name);
    const PredictedTraffic traffic =
        found == plan.traffic.end() ? PredictedTraffic() : found->second;
    json[name] = {{"count", traffic.count}, {"bytes", traffic.bytes}};
  }
  return json;
}

Json AxesAsJson(const JobPlan& plan) {
  Json json = Json::array();
  for (const AxesTraffic& along : plan.traffic_of_axes) {
    json.push_back({{"axes", along.axes},
                    {"messages", along.messages},
                    {"bytes", along.bytes},
                    {"host_bytes", along.host_bytes}});
  }
  return json;
}

Json PeakAsJson(const JobPlan& plan) {
  const ScheduledNode& node = plan.schedule[plan.peak];
  Json buffers = Json::array();
  for (const PlannedBuffer& buffer : plan.peak_alive) {
    buffers.push_back({{"name", buffer.name},
                       {"category", std::string(MemoryCategoryName(buffer.category))},
                       {"bytes", buffer.bytes}});
  }
  return {{"node", plan.peak},
          {"section", node.section},
          {"op", node.op},
          {"value", node.value},
          {"scope", node.scope},
          {"live_bytes", node.alive_bytes},
          {"buffers", std::move(buffers)}};
}

Json TransfersAsJson(const JobPlan& plan) {
  Json json = Json::array();
  for (const PlannedTransfer& transfer : plan.transfers) {
    json.push_back({{"section", transfer.section},
                    {"op", transfer.op},
                    {"value", transfer.value},
                    {"calls", transfer.calls},
                    {"bytes", transfer.bytes},
                    {"ms", transfer.ms},
                    {"hidden_ms", transfer.hidden_ms},
                    {"held_bytes", transfer.held_bytes},
                    {"reason", transfer.reason}});
  }
  return json;
}

Json PricesAsJson(const JobPlan& plan) {
  if (!plan.priced) return nullptr;
  return {{"source", plan.machine.prices->source()},
          {"same_types_ms", plan.priced->same_types_ms},
          {"same_transfers_ms",
           plan.priced_transfers ? Json(plan.priced_transfers->same_types_ms) : Json(nullptr)},
          {"unpriced", plan.priced->unpriced}};
}

Json TimeAsJson(const JobPlan& plan) {
  return {{"flops_per_step", plan.flops},
          {"compute_ms", plan.time.compute_ms},
          {"start_ms", plan.time.start_ms},
          {"transfer_ms", plan.time.transfer_ms},
          {"host_transfer_ms", plan.time.host_transfer_ms},
          {"latency_ms", plan.time.latency_ms},
          {"priced_transfer_ms", plan.time.priced_transfer_ms},
          {"hidden_ms", plan.time.hidden_ms},
          {"slowed_ms", plan.time.slowed_ms},
          {"step_ms", plan.time.step_ms()},
          {"prices", PricesAsJson(plan)},
          {"compile_ms", plan.compile_ms}};
}

Json OverlapAsJson(const OverlapChoices& choices) {
  Json json = Json::array();
  for (const OverlapChoice& choice : choices.tried) {
    const bool is_unlimited = choice.max_bytes == CompileOptions::kUnlimitedBytes;
    json.push_back({{"max_bytes", is_unlimited ? Json(nullptr) : Json(choice.max_bytes)},
                    {"step_ms", choice.step_ms},
                    {"peak", choice.peak_bytes},
                    {"chosen", &choice == &choices.best()}});
  }
  return json;
}

Json ReplicatedAsJson(const JobPlan& plan) {
  Json json = Json::array();
  for (const Replicated& replicated : plan.replicated) {
    json.push_back({{"category", std::string(MemoryCategoryName(replicated.category))},
                    {"bytes", replicated.bytes},
                    {"reason", replicated.reason},
                    {"tensors", replicated.tensors}});
  }
  return json;
}

}  // namespace

std::string JsonReport(const PlanReport& report) {
  const JobPlan& plan = report.plan;
  Json json = {{"model", plan.model},
               {"config", ConfigAsJson(report.config)},
               {"zero", StagesAsJson(plan.options.zero)},
               {"inputs", plan.inputs},
               {"micro_batches", plan.options.micro_batches},
               {"parameters", plan.num_parameters},
               {"memory",
                {{"predicted", MemoryAsJson(plan)},
                 {"lower_bound", plan.lower_bound_bytes},
                 {"kept", plan.kept_bytes},
                 {"saving", plan.saving_bytes},
                 {"results", plan.result_bytes},
                 {"ratio", plan.ratio()}}},
               {"peak", PeakAsJson(plan)},
               {"communication",
                {{"predicted", TrafficAsJson(plan)},
                 {"axes", AxesAsJson(plan)},
                 {"transfers", TransfersAsJson(plan)},
                 {"race_proof",
                  {{"transfers", plan.races.transfers},
                   {"accesses", plan.races.accesses},
                   {"ms", plan.races.ms}}}}},
               {"time", TimeAsJson(plan)},
               {"whole", ReplicatedAsJson(plan)}};
  for (const VariantPlan& one : plan.variants) {
    Json item = {{"peak", one.peak_bytes}, {"flops_per_step", one.flops}, {"step_ms", one.step_ms}};
    const bool is_phase = one.variant.size == 0;
    if (is_phase) item["phase"] = one.variant.phase;
    if (!is_phase) item["size"] = one.variant.size;
    json[is_phase ? "phases" : "sizes"].push_back(std::move(item));
  }
  if (plan.owned.tensors > 0) {
    json["owned"] = {{"tensors", plan.owned.tensors},
                     {"buckets", plan.owned.buckets},
                     {"bytes_imbalance", plan.owned.bytes_imbalance},
                     {"flops_imbalance", plan.owned.flops_imbalance}};
  }
  if (!report.overlap.tried.empty()) json["overlap"] = OverlapAsJson(report.overlap);
  if (report.fit_bytes.has_value()) {
    json["fit"] = *report.fit_bytes;
    json["front"] = Json::array();
    for (const FitWay& way : report.fit_front) {
      json["front"].push_back(
          {{"peak", way.peak_bytes}, {"step_ms", way.step_ms}, {"command", way.command}});
    }
  }
  if (report.stages.has_value()) {
    json["stages"] = Json::array();
    for (const JobPlan& stage : report.stages->plans) {
      json["stages"].push_back({{"zero", StagesAsJson(stage.options.zero)},
                                {"memory", {{"predicted", MemoryAsJson(stage)}}},
                                {"communication", {{"predicted", TrafficAsJson(stage)}}},
                                {"step_ms", stage.time.step_ms()}});
    }
    json["warnings"] = report.stages->warnings;
  }
  // Paths on a command line need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zg::plan
