#include "framework/train/run_trace.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/io/atomic_file.h"
#include "framework/runtime/profile.h"
#include "framework/runtime/trace.h"

namespace zg {
namespace {

// Names the clock of this host since it was started.
std::string ClockName() {
  std::string name;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
  return name;
}

// The same moment on the clock of each rank. Ranks of one host have one clock: their moments are
// equal. Between hosts they differ by the time that the ranks take to leave a barrier.
StatusOr<int64_t> MomentOnAllRanks(Communicator& communicator) {
  ZG_RETURN_IF_ERROR(communicator.Barrier("begin the trace"));
  const int64_t mine = SteadyNanoseconds();
  const std::string clock = ClockName();
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> of_ranks,
                      communicator.Exchange("clocks", fmt::format("{} {}", clock, mine)));
  for (const std::string& text : of_ranks) {
    const size_t space = text.find(' ');
    if (text.substr(0, space) == clock) return std::stoll(text.substr(space + 1));
  }
  return mine;
}

}  // namespace

RunTrace::RunTrace(const Job& job, Trainer& trainer)
    : job_(job),
      trainer_(trainer),
      num_steps_left_(job.options().trace.empty() ? 0 : job.options().trace_steps) {}

Status RunTrace::Begin() {
  if (num_steps_left_ == 0) return Status::Ok();
  if (trainer_.executor().timeline() == nullptr) {
    return FailedPrecondition(
        "`trace`: the trainer keeps no timeline; make it with TrainerOptions::trace_steps");
  }
  ZG_ASSIGN_OR_RETURN(start_ns_, MomentOnAllRanks(trainer_.executor().communicator()));
  return Status::Ok();
}

void RunTrace::AfterStep() {
  if (num_steps_left_ > 0 && --num_steps_left_ == 0) Write();
}

void RunTrace::Finish() {
  if (num_steps_left_ > 0) Write();
  num_steps_left_ = 0;
}

void RunTrace::Write() {
  failure_ = WriteFile().WithContext("`trace`");
  if (!failure_.ok() && job_.is_main()) {
    spdlog::warn("{}\n  training goes on", failure_.message());
  }
}

// One rank after the other, so that no rank holds the events of all.
Status RunTrace::WriteFile() {
  Communicator& communicator = trainer_.executor().communicator();
  std::vector<TracedProgram> programs;
  for (const Executor* executor : trainer_.executors()) {
    ZG_RETURN_IF_ERROR(executor->Settle());  // its thread writes to the timeline
    programs.push_back(
        {&executor->graph(), &executor->plan(), executor->timeline(), executor->variant()});
  }
  const std::string mine = TraceEvents(programs, communicator.rank(), start_ns_);
  std::optional<AtomicFile> file;
  Status status;
  const auto write = [&](const std::string& text) {
    if (status.ok()) status = file->Write(text.data(), text.size());
  };
  if (job_.is_main()) {
    StatusOr<AtomicFile> created = AtomicFile::Create(job_.options().trace);
    status = created.status();
    if (status.ok()) file.emplace(std::move(*created));
    write(TraceBegin(trainer_.executor().graph().name()));
  }
  for (int rank = 0; rank < communicator.size(); ++rank) {
    ZG_ASSIGN_OR_RETURN(
        const std::vector<std::string> events,
        communicator.Exchange("trace", rank == communicator.rank() ? mine : std::string()));
    if (job_.is_main()) write((rank == 0 ? "" : ",\n") + events[rank]);
  }
  if (!job_.is_main()) return Status::Ok();
  write(TraceEnd());
  return status.ok() ? file->Commit() : status;
}

}  // namespace zg
