#include "framework/train/report_state.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/job/process_memory.h"

namespace zg {
namespace {

StatusOr<std::vector<int64_t>> PeakOfEveryRank(Communicator& communicator, int64_t mine) {
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                      communicator.Exchange("peak memory", std::to_string(mine)));
  std::vector<int64_t> peaks;
  for (const std::string& text : texts) peaks.push_back(std::stoll(text));
  return peaks;
}

// The most of two programs, which do not run at the same time.
void TakeMost(const CategoryBytes& category_bytes, int64_t peak_bytes, MemoryUse* use) {
  use->peak_bytes = std::max(use->peak_bytes, peak_bytes);
  for (size_t i = 0; i < category_bytes.size(); ++i) {
    use->category_bytes[i] = std::max(use->category_bytes[i], category_bytes[i]);
  }
}

}  // namespace

Status ReportMemory(const Job& job, Trainer& trainer, Report* report) {
  for (const Executor* of_size : trainer.executors()) {
    const MemoryMeter& meter = of_size->meter();
    TakeMost(of_size->plan().category_bytes, of_size->plan().arena_bytes,
             &report->predicted_memory);
    TakeMost(meter.category_bytes(), meter.peak_bytes(), &report->measured_memory);
  }
  const Executor& executor = trainer.executor();
  report->evals_not_run = executor.EvalsNotRun();
  ZG_ASSIGN_OR_RETURN(const ProcessMemory memory, ReadProcessMemory());
  // The operating system counts peers' memory that is mapped here, but it belongs to them.
  report->rss_peak_bytes =
      memory.peak_resident_bytes - executor.communicator().arena().peer_resident_bytes();
  ZG_ASSIGN_OR_RETURN(const DeviceMemoryUse device, executor.device().MemoryUse());
  report->device_library_bytes = device.library_bytes;
  report->rss_before_graph_bytes = job.resident_bytes_at_start();
  ZG_ASSIGN_OR_RETURN(report->per_rank_peak_bytes,
                      PeakOfEveryRank(executor.communicator(), report->measured_memory.peak_bytes));
  return Status::Ok();
}

Status ReportFinalState(Trainer& trainer, Report* report) {
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer.digest_parameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer.digest_optimizer_state());
  report->final_state = {parameters.sum, parameters.sha256, state.sha256,
                         trainer.steps_done() - trainer.num_updates()};
  return Status::Ok();
}

}  // namespace zg
