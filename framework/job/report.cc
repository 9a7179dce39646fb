#include "framework/job/report.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "framework/base/median.h"
#include "framework/io/atomic_file.h"

namespace zg {
namespace {

using Json = nlohmann::ordered_json;

// The nearest number with 9 significant digits, which also prints that way.
Json NineDigits(double number) {
  if (!std::isfinite(number)) return nullptr;
  return std::strtod(fmt::format("{:.9g}", number).c_str(), nullptr);
}

Json Number(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json ConfigAsJson(const std::vector<ResolvedFlag>& config) {
  Json json = Json::object();
  for (const ResolvedFlag& flag : config) {
    std::visit([&](const auto& value) { json[flag.name] = value; }, flag.value);
  }
  return json;
}

void AddVariant(const Variant& variant, Json* json) {
  if (variant.size != 0) (*json)["size"] = variant.size;
  if (!variant.phase.empty()) (*json)["phase"] = variant.phase;
}

Json StepAsJson(const StepRecord& step) {
  Json json = {{"step", step.step},
               {"loss", NineDigits(step.loss)},
               {"grad_norm", step.grad_norm ? NineDigits(*step.grad_norm) : Json(nullptr)},
               {"lr", Number(step.lr)},
               {"ms", Number(step.ms)}};
  AddVariant(step.variant, &json);
  return json;
}

Json MemoryAsJson(const MemoryUse& memory) {
  Json json = Json::object();
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    json[std::string(MemoryCategoryName(static_cast<MemoryCategory>(i)))] =
        memory.category_bytes[i];
  }
  json["peak"] = memory.peak_bytes;
  return json;
}

Json TrafficAsJson(const TrafficCounters& traffic) {
  Json json = Json::object();
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    json[std::string(CollectiveName(static_cast<CollectiveKind>(i)))] = {
        {"count", traffic[i].count}, {"bytes", traffic[i].bytes}};
  }
  return json;
}

Json Rate(double per_s) { return per_s > 0 ? Number(per_s) : Json(nullptr); }

Json ProfileAsJson(const Profile& profile) {
  Json rows = Json::array();
  for (const ProfileRow& row : profile.rows) {
    rows.push_back({{"op", row.op},
                    {"section", row.section},
                    {"calls", row.calls},
                    {"ms", row.ms},
                    {"share", profile.Share(row.ms)},
                    {"gflops_per_s", Rate(row.gflops_per_s())},
                    {"gb_per_s", Rate(row.gb_per_s())}});
  }
  Json modules = Json::array();
  for (const ProfileModule& module : profile.modules) {
    modules.push_back({{"module", module.module},
                       {"forward_ms", module.forward_ms},
                       {"backward_ms", module.backward_ms},
                       {"update_ms", module.update_ms},
                       {"ms", module.ms()},
                       {"share", profile.Share(module.ms())}});
  }
  Json all_calls = Json::array();
  for (const ProfileCalls& calls : profile.calls) {
    all_calls.push_back({{"op", calls.op},
                         {"section", calls.section},
                         {"types", calls.types},
                         {"calls", calls.calls},
                         {"ms", calls.ms},
                         {"flops", calls.flops},
                         {"bytes", calls.bytes}});
  }
  Json all_transfers = Json::array();
  for (const ProfileTransfers& transfers : profile.transfers) {
    all_transfers.push_back({{"op", transfers.op},
                             {"section", transfers.section},
                             {"types", transfers.types},
                             {"calls", transfers.calls},
                             {"ms", transfers.ms},
                             {"processor_ms", transfers.processor_ms},
                             {"bytes", transfers.bytes}});
  }
  Json json = Json::object();
  AddVariant(profile.variant, &json);
  json.update({{"steps", profile.steps},
               {"is_warm", profile.is_warm},
               {"step_ms", profile.step_ms},
               {"feed_ms", profile.feed_ms},
               {"between_nodes_ms", profile.between_nodes_ms()},
               {"rows", std::move(rows)},
               {"modules", std::move(modules)},
               {"calls", std::move(all_calls)},
               {"transfers", std::move(all_transfers)}});
  return json;
}

// An array if the program has sizes or phases.
Json ProfilesAsJson(const std::vector<Profile>& profiles) {
  if (profiles.empty()) return nullptr;
  if (profiles[0].variant.is_only()) return ProfileAsJson(profiles[0]);
  Json all = Json::array();
  for (const Profile& profile : profiles) all.push_back(ProfileAsJson(profile));
  return all;
}

}  // namespace

double MedianOfSteps(const std::vector<StepRecord>& steps,
                     const std::function<double(const StepRecord& step)>& value) {
  std::vector<double> values;
  for (const StepRecord& step : steps) values.push_back(value(step));
  if (values.size() > 1) values.erase(values.begin());
  return Median(std::move(values));
}

double MedianStepMs(const std::vector<StepRecord>& steps) {
  return MedianOfSteps(steps, [](const StepRecord& step) { return step.ms; });
}

std::string ReportAsJson(const Report& report) {
  Json steps = Json::array();
  for (const StepRecord& step : report.steps) steps.push_back(StepAsJson(step));
  Json memory = {{"predicted", MemoryAsJson(report.predicted_memory)},
                 {"measured", MemoryAsJson(report.measured_memory)},
                 {"evals_not_run", report.evals_not_run},
                 {"rss_peak", report.rss_peak_bytes},
                 {"device_libraries", report.device_library_bytes},
                 {"rss_before_graph", report.rss_before_graph_bytes},
                 {"per_rank_peak", report.per_rank_peak_bytes},
                 {"saving", report.saving_bytes},
                 {"results", report.result_bytes}};
  const Json json = {{"model", report.model},
                     {"inputs", report.inputs},
                     {"arithmetic", report.arithmetic},
                     {"config", ConfigAsJson(report.config)},
                     {"steps", std::move(steps)},
                     {"final",
                      {{"param_sum", Number(report.final_state.param_sum)},
                       {"param_sha256", report.final_state.param_sha256},
                       {"optimizer_sha256", report.final_state.optimizer_sha256},
                       {"skipped_updates", report.final_state.skipped_updates}}},
                     {"memory", std::move(memory)},
                     {"communication",
                      {{"transport", report.transport},
                       {"hosts", report.hosts},
                       {"processors", report.processors},
                       {"predicted", TrafficAsJson(report.predicted_traffic)},
                       {"measured", TrafficAsJson(report.measured_traffic)}}},
                     {"speed",
                      {{"ms_per_step_median", Number(report.speed.ms_per_step_median)},
                       {"tokens_per_s", Number(report.speed.tokens_per_s)},
                       {"flops_per_step", Number(report.speed.flops_per_step)},
                       {"compile_ms", Number(report.speed.compile_ms)}}},
                     {"profile", ProfilesAsJson(report.profiles)}};
  // Paths on a command line need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status WriteReport(const std::string& path, const Report& report) {
  return WriteFileAtomically(path, ReportAsJson(report));
}

Status CheckWritable(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty() && !std::filesystem::is_directory(parent, error)) {
    return InvalidArgument("{}: directory {} does not exist; create it first", path,
                           parent.string());
  }
  if (std::filesystem::is_directory(path, error)) {
    return InvalidArgument("{}: is a directory, expected the name of a file", path);
  }
  const StatusOr<AtomicFile> file = AtomicFile::Create(path);  // removed by its destructor
  if (!file.ok()) return InvalidArgument("{}", file.status().message());
  return Status::Ok();
}

}  // namespace zg
