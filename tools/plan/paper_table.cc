#include "tools/plan/paper_table.h"

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "framework/base/format.h"
#include "zero/memory_model.h"

namespace zg::plan {
namespace {

constexpr int kNumStages = 4;

struct PaperRow {
  zero::ModelStateBytes bytes;
  double elements_sent = 0;
};

StatusOr<std::array<PaperRow, kNumStages>> Rows(const PlanOptions& options) {
  std::array<PaperRow, kNumStages> rows;
  for (int stage = 0; stage < kNumStages; ++stage) {
    const zero::ModelStates states = {options.num_parameters, options.ranks, stage};
    ZG_ASSIGN_OR_RETURN(rows[stage].bytes, zero::PredictModelStates(states));
    ZG_ASSIGN_OR_RETURN(rows[stage].elements_sent, zero::PredictElementsSent(states));
  }
  return rows;
}

}  // namespace

StatusOr<std::string> PaperTable(const PlanOptions& options) {
  ZG_ASSIGN_OR_RETURN(const auto rows, Rows(options));
  const auto gigabytes = [](double bytes) { return fmt::format("{:.6g}", bytes / 1e9); };
  std::vector<std::vector<std::string>> table = {
      {"  stage", "parameters", "gradients", "optimizer_state", "GB per rank", "elements sent"}};
  for (int stage = 0; stage < kNumStages; ++stage) {
    const PaperRow& row = rows[stage];
    table.push_back({fmt::format("{} {}", stage == options.compile.zero.stage ? '>' : ' ', stage),
                     gigabytes(row.bytes.parameters), gigabytes(row.bytes.gradients),
                     gigabytes(row.bytes.optimizer_state), gigabytes(row.bytes.total()),
                     FormatCount(row.elements_sent)});
  }
  return fmt::format(
             "{} parameters on {} ranks, mixed-precision Adam: 2 + 2 + 12 bytes per parameter\n\n",
             FormatCount(options.num_parameters), options.ranks) +
         FormatTable(table);
}

StatusOr<std::string> PaperJson(const PlanOptions& options) {
  ZG_ASSIGN_OR_RETURN(const auto rows, Rows(options));
  using Json = nlohmann::ordered_json;
  Json stages = Json::array();
  for (int stage = 0; stage < kNumStages; ++stage) {
    const PaperRow& row = rows[stage];
    stages.push_back({{"zero", stage},
                      {"parameters", row.bytes.parameters},
                      {"gradients", row.bytes.gradients},
                      {"optimizer_state", row.bytes.optimizer_state},
                      {"total", row.bytes.total()},
                      {"elements_sent", row.elements_sent}});
  }
  const Json json = {{"parameters", options.num_parameters},
                     {"ranks", options.ranks},
                     {"zero", options.compile.zero.stage},
                     {"stages", std::move(stages)}};
  return json.dump(2) + "\n";
}

}  // namespace zg::plan
