#include "framework/train/run_metrics.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "framework/job/console.h"
#include "framework/job/process_memory.h"

namespace zg {

Status RunMetrics::Open() {
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
  print_out(fmt::format("metrics in {}: removed {} step{} after step {}, to be taken again\n",
                        job_.options().metrics, count, count == 1 ? "" : "s",
                        trainer_.steps_done()));
}

void RunMetrics::AfterStep(const StepRecord& record) {
  if (metrics_ == nullptr) return;
  std::vector<NamedScalar> values = {{"loss", record.loss}, {"lr", record.lr}};
  if (record.grad_norm) values.push_back({"grad_norm", *record.grad_norm});
  values.push_back({"ms", record.ms});
  const auto add_rate = [&](const char* name, int64_t per_step) {
    if (per_step == 0 || record.ms <= 0) return;
    values.push_back({name, 1e3 * static_cast<double>(per_step) / record.ms});
  };
  add_rate("samples_per_s", step_size_.samples);
  add_rate("tokens_per_s", step_size_.tokens);
  const auto arena_bytes = static_cast<double>(trainer_.executor().meter().peak_bytes());
  values.push_back({"arena_bytes", arena_bytes});
  if (const StatusOr<ProcessMemory> memory = ReadProcessMemory(); memory.ok()) {
    values.push_back({"private_bytes",
                      static_cast<double>(memory->resident_bytes - memory->shared_resident_bytes)});
  }
  Write(record.step, values);
}

void RunMetrics::Log(std::string_view name, double value) {
  if (metrics_ != nullptr) Write(trainer_.steps_done(), {{std::string(name), value}});
}

void RunMetrics::Write(int64_t step, const std::vector<NamedScalar>& values) {
  if (!failure_.ok()) return;
  failure_ = metrics_->Write(step, values).WithContext("`metrics`");
  if (failure_.ok()) return;
  print_error(fmt::format("warning: step {}: {}\n  training goes on without them\n", step,
                          failure_.message()));
}

}  // namespace zg
