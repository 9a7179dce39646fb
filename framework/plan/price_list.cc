#include "framework/plan/price_list.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>

#include "framework/io/mapped_file.h"
#include "framework/ir/op_registry.h"
#include "framework/passes/predict_traffic.h"

namespace zg::plan {
namespace {

using Json = nlohmann::json;

constexpr double kShortestMsForRates = 0.01;   // per call; as in a profile's table
constexpr double kFewestBytesForRates = 4096;  // per transfer; the time of fewer is latency

Status CheckSettings(const Json& config, const PriceList::RunSettings& settings) {
  const auto threads = config.at("threads").get<int>();
  if (threads != settings.threads) {
    return InvalidArgument(
        "was measured with `threads={}`, but the job has {}; measure it with as many", threads,
        settings.threads);
  }
  const auto dtype = config.at("dtype").get<std::string>();
  if (dtype != DTypeName(settings.dtype)) {
    return InvalidArgument("was measured with `dtype={}`, but the job has {}; measure it with that",
                           dtype, DTypeName(settings.dtype));
  }
  return Status::Ok();
}

bool HasKernel(const std::string& op) {
  const ir::OpDef* const known = ir::OpRegistry::Global().Find(op);
  return known == nullptr || known->traits.has_kernel();
}

Profile ProfileFrom(const Json& json) {
  Profile profile;
  profile.steps = json.at("steps").get<int64_t>();
  profile.is_warm = json.at("is_warm").get<bool>();
  profile.step_ms = json.at("step_ms").get<double>();
  for (const Json& call : json.at("calls")) {
    ProfileCalls calls;
    calls.op = call.at("op").get<std::string>();
    calls.section = call.at("section").get<std::string>();
    calls.types = call.at("types").get<std::string>();
    calls.calls = call.at("calls").get<int64_t>();
    calls.ms = call.at("ms").get<double>();
    calls.flops = call.at("flops").get<double>();
    calls.bytes = call.at("bytes").get<double>();
    profile.calls.push_back(std::move(calls));
  }
  for (const Json& transfer : json.at("transfers")) {
    ProfileTransfers transfers;
    transfers.op = transfer.at("op").get<std::string>();
    transfers.section = transfer.at("section").get<std::string>();
    transfers.types = transfer.at("types").get<std::string>();
    transfers.calls = transfer.at("calls").get<int64_t>();
    transfers.ms = transfer.at("ms").get<double>();
    transfers.processor_ms = transfer.at("processor_ms").get<double>();
    transfers.bytes = transfer.at("bytes").get<double>();
    profile.transfers.push_back(std::move(transfers));
  }
  return profile;
}

ProfiledRanks RanksFrom(const Json& report) {
  const Json& communication = report.at("communication");
  ProfiledRanks ranks;
  ranks.hosts = communication.at("hosts").get<std::vector<int>>();
  if (ranks.hosts.empty()) return ranks;
  const auto on_host = std::count(ranks.hosts.begin(), ranks.hosts.end(), ranks.hosts[0]);
  const auto threads = report.at("config").at("threads").get<int64_t>();
  ranks.have_free_processors =
      on_host * (threads + 1) <= communication.at("processors").get<int64_t>();
  return ranks;
}

struct ProfiledRun {
  Profile profile;
  ProfiledRanks ranks;
};

StatusOr<ProfiledRun> ParseReport(std::string_view text, const PriceList::RunSettings& settings) {
  ProfiledRun run;
  try {
    const Json report = Json::parse(text);
    ZG_RETURN_IF_ERROR(CheckSettings(report.at("config"), settings));
    if (report.at("profile").is_null()) {
      return InvalidArgument("is of a run without `profile`; run it again with that");
    }
    if (report.at("profile").is_array()) {
      return InvalidArgument("is of a run of several sizes or phases; run one of them alone");
    }
    run = {ProfileFrom(report.at("profile")), RanksFrom(report)};
  } catch (const std::exception& error) {
    return InvalidArgument("is no report of a run with `profile`: {}", error.what());
  }
  if (!run.profile.is_warm) {
    return InvalidArgument("is of a run of one step, which warms up; give it `steps=10`, say");
  }
  return run;
}

}  // namespace

void PriceList::Sum::Add(const ProfileCalls& other) {
  calls += static_cast<double>(other.calls);
  ms += other.ms;
  flops += other.flops;
  bytes += other.bytes;
}

bool PriceList::Sum::HasRate() const { return ms >= kShortestMsForRates * calls; }

void PriceList::TransferSum::Add(const ProfileTransfers& other) {
  calls += static_cast<double>(other.calls);
  ms += other.ms;
  processor_ms += other.processor_ms;
  bytes += other.bytes;
}

PriceList::PriceList(const Profile& profile, std::string source, ProfiledRanks ranks)
    : source_(std::move(source)), ranks_(std::move(ranks)) {
  double between_ms = profile.step_ms;
  double kernels = 0;
  for (const ProfileCalls& calls : profile.calls) {
    between_ms -= calls.ms;
    if (calls.calls == 0) continue;
    if (HasKernel(calls.op)) kernels += static_cast<double>(calls.calls);
    by_types_[{calls.op, calls.section, calls.types}].Add(calls);
    by_section_[{calls.op, calls.section}].Add(calls);
    by_op_[calls.op].Add(calls);
  }
  if (kernels > 0) ms_between_kernels_ = between_ms / kernels;
  for (const ProfileTransfers& transfers : profile.transfers) {
    if (transfers.calls == 0) continue;
    transfers_by_types_[{transfers.op, transfers.section, transfers.types}].Add(transfers);
    transfers_by_op_[transfers.op].Add(transfers);
    all_transfers_.Add(transfers);
  }
}

StatusOr<PriceList> PriceList::Read(const std::string& path, const RunSettings& settings) {
  const StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return InvalidArgument("{}", file.status().message());
  const StatusOr<ProfiledRun> run =
      ParseReport({reinterpret_cast<const char*>(file->data()), file->size()}, settings);
  ZG_RETURN_IF_ERROR(run.status().WithContext(path));
  return PriceList(run->profile, path, run->ranks);
}

const PriceList::Sum* PriceList::FindRate(const std::string& op, const std::string& section) const {
  const auto in_section = by_section_.find({op, section});
  if (in_section != by_section_.end() && in_section->second.HasRate()) return &in_section->second;
  const auto anywhere = by_op_.find(op);
  return anywhere != by_op_.end() && anywhere->second.HasRate() ? &anywhere->second : nullptr;
}

PriceList::Price PriceList::Of(const ir::Graph& graph, const ir::Node& node) const {
  const std::string section(ir::SectionKindName(node.section->kind));
  const auto same = by_types_.find({node.op->name, section, LocalTypesText(graph, node)});
  if (same != by_types_.end()) {
    return {same->second.ms / same->second.calls, Basis::kSameTypes};
  }
  const Sum* const rate = FindRate(node.op->name, section);
  if (rate == nullptr) return {};
  if (node.op->flops != nullptr && rate->flops > 0) {
    const auto flops = static_cast<double>(node.op->flops(node.LocalCall(graph.mesh())));
    return {rate->ms / rate->flops * flops, Basis::kRate};
  }
  if (rate->bytes > 0) {
    const auto bytes = static_cast<double>(LocalBytes(graph, node));
    return {rate->ms / rate->bytes * bytes, Basis::kRate};
  }
  return {rate->ms / rate->calls, Basis::kRate};
}

PriceList::TransferPrice PriceList::OfTransfer(const ir::Graph& graph, const ir::Node& node) const {
  const auto per = [&](const TransferSum& sum, double amount, double total, Basis basis) {
    TransferPrice price = {sum.ms / total * amount, 0, basis};
    if (!ranks_.have_free_processors) price.processor_ms = sum.processor_ms / total * amount;
    return price;
  };
  const std::string section(ir::SectionKindName(node.section->kind));
  const auto same = transfers_by_types_.find({node.op->name, section, LocalTypesText(graph, node)});
  if (same != transfers_by_types_.end()) {
    return per(same->second, 1, same->second.calls, Basis::kSameTypes);
  }
  const auto of_op = transfers_by_op_.find(node.op->name);
  const bool op_has_rate = of_op != transfers_by_op_.end() &&
                           of_op->second.bytes >= kFewestBytesForRates * of_op->second.calls;
  const TransferSum& rate = op_has_rate ? of_op->second : all_transfers_;
  if (rate.bytes == 0) return {};
  return per(rate, static_cast<double>(SentBytes(graph, node)), rate.bytes, Basis::kRate);
}

}  // namespace zg::plan
