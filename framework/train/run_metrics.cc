#include "framework/train/run_metrics.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "framework/base/format.h"
#include "framework/job/console.h"
#include "framework/job/process_memory.h"

namespace zg {

Status RunMetrics::Open() {
  if (job_.options().metrics_histograms > 0 &&
      trainer_.executor().gradient_histograms() == nullptr) {
    return FailedPrecondition(
        "`metrics_histograms`: the trainer does not count gradients; make it with "
        "TrainerOptions::gradient_histograms_every");
  }
  if (job_.options().metrics.empty() || !job_.is_main()) return Status::Ok();
  StatusOr<std::unique_ptr<Metrics>> opened =
      Metrics::Open(job_.options().metrics, trainer_.steps_done());
  ZG_RETURN_IF_ERROR(opened.status().WithContext("`metrics`"));
  metrics_ = std::move(*opened);
  return Status::Ok();
}

void RunMetrics::PrintStart() const {
  if (metrics_ == nullptr || metrics_->num_removed_steps() == 0) return;
  const int64_t count = metrics_->num_removed_steps();
  print_out(fmt::format("metrics in {}: removed {} after step {}, to be taken again\n",
                        job_.options().metrics, Counted(count, "step"), trainer_.steps_done()));
}

Status RunMetrics::AfterStep(const StepRecord& record) {
  if (metrics_ != nullptr) WriteScalars(record);
  const int64_t every = job_.options().metrics_histograms;
  return every > 0 && record.step % every == 0 ? WriteHistograms(record.step) : Status::Ok();
}

void RunMetrics::WriteScalars(const StepRecord& record) {
  std::vector<NamedScalar> values = {{"loss", record.loss}, {"lr", record.lr}};
  if (record.grad_norm) values.push_back({"grad_norm", *record.grad_norm});
  values.push_back({"ms", record.ms});
  const auto add_rate = [&](const char* name, int64_t per_step) {
    if (per_step == 0 || record.ms <= 0) return;
    values.push_back({name, 1e3 * static_cast<double>(per_step) / record.ms});
  };
  add_rate("samples_per_s", record.work.samples);
  add_rate("tokens_per_s", record.work.tokens);
  int64_t arena_bytes = 0;
  for (const Executor* executor : trainer_.executors()) {
    arena_bytes = std::max(arena_bytes, executor->meter().peak_bytes());
  }
  values.push_back({"arena_bytes", static_cast<double>(arena_bytes)});
  if (const StatusOr<ProcessMemory> memory = ReadProcessMemory(); memory.ok()) {
    values.push_back({"private_bytes",
                      static_cast<double>(memory->resident_bytes - memory->shared_resident_bytes)});
  }
  Write(record.step, values);
}

void RunMetrics::Log(std::string_view name, double value) {
  if (metrics_ != nullptr) Write(trainer_.steps_done(), {{std::string(name), value}});
}

// Each rank has counted the gradients that it updates with.
Status RunMetrics::WriteHistograms(int64_t step) {
  std::string mine;
  for (const auto& [name, histogram] : trainer_.step_executor().gradient_histograms()->Take()) {
    mine += fmt::format("{}\t{}\n", name, histogram.Pack());
  }
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> of_ranks,
                      trainer_.executor().communicator().Exchange("histograms of gradients", mine));
  if (metrics_ == nullptr || !failure_.ok()) return Status::Ok();
  std::map<std::string, ValueHistogram> all;
  for (const std::string& lines : of_ranks) {
    std::istringstream stream(lines);
    for (std::string name, packed; std::getline(stream, name, '\t');) {
      std::getline(stream, packed);
      all["gradients/" + name].Merge(ValueHistogram::Unpack(packed));
    }
  }
  Note(step, metrics_->WriteHistograms(step, all));
  return Status::Ok();
}

void RunMetrics::Write(int64_t step, const std::vector<NamedScalar>& values) {
  if (failure_.ok()) Note(step, metrics_->Write(step, values));
}

void RunMetrics::Note(int64_t step, const Status& status) {
  failure_ = status.WithContext("`metrics`");
  if (failure_.ok()) return;
  spdlog::warn("step {}: {}\n  training goes on without them", step, failure_.message());
}

}  // namespace zg
