// A program with only a Job, for the tests of starting, failing and being killed. With --do, one
// rank or all of them misbehave.

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "framework/job/console.h"
#include "framework/job/job.h"
#include "framework/job/process_memory.h"
#include "framework/job/progress.h"
#include "framework/job/report.h"
#include "framework/job/summary.h"

namespace {

volatile std::sig_atomic_t got_usr1 = 0;

void Train(zg::Job& job, double lr, double step_ms) {
  zg::Report report;
  report.model = "nothing";
  report.config = job.config();
  {
    zg::ProgressOptions options;
    options.total_steps = job.options().steps;
    options.terminal_columns = zg::TerminalColumns();
    zg::Progress progress(options);
    bool is_stopped = false;
    for (int64_t step = 1; step <= job.options().steps && !is_stopped; ++step) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(step_ms));
      // The ranks get the signal at different steps, and stop at the same one.
      const auto stops = job.communicator().Exchange("step", got_usr1 == 0 ? "" : "stop");
      if (!stops.ok()) job.fail(stops.status().WithContext(fmt::format("step {}", step)));
      is_stopped = std::count(stops->begin(), stops->end(), "stop") > 0;
      report.steps.push_back({step, 1.0 / static_cast<double>(step), std::nullopt, lr, step_ms});
      report.steps.back().work.tokens = 1000;
      if (job.is_main()) progress.Step(report.steps.back());
    }
  }
  const auto memory = job.value_on_all_ranks(zg::ReadProcessMemory());
  report.rss_peak_bytes = memory.peak_resident_bytes;
  report.per_rank_peak_bytes.assign(job.size(), 0);
  report.speed.ms_per_step_median = zg::MedianStepMs(report.steps);
  if (!job.is_main()) return;
  zg::print_out(zg::Summary(report));
  if (job.options().report.empty()) return;
  if (const zg::Status status = zg::WriteReport(job.options().report, report); !status.ok()) {
    job.fail(status);
  }
}

void Misbehave(zg::Job& job, const std::string& action, bool is_me) {
  if (action == "fail" && is_me) job.fail(zg::DataLoss("something is broken"));
  if (action == "fail-together") {
    job.check_on_all_ranks(is_me ? zg::DataLoss("something is broken") : zg::Status::Ok());
  }
  if (action == "fail-everywhere") job.check_on_all_ranks(zg::DataLoss("everything is broken"));
  if (action == "warn") {
    spdlog::info("all is well");
    spdlog::warn("something is odd");
  }
  if (action == "crash" && is_me) std::abort();
  if (action == "kill" && is_me) std::raise(SIGKILL);
  if (action == "exit-3" && is_me) std::_Exit(3);
  if (action == "leave" && is_me) std::_Exit(0);
  if (action == "stop" && is_me) std::raise(SIGSTOP);
}

}  // namespace

int main(int argc, char** argv) {
  std::string action = "train";
  int on_rank = 0;
  double lr = 1e-3;
  double step_ms = 0;
  std::vector<std::string> words;
  zg::FlagParser flags("Does nothing, on any number of ranks.");
  flags.section("Test");
  flags.add_choice("do", &action,
                   {"train", "fail", "fail-together", "fail-everywhere", "return-error", "crash",
                    "kill", "exit-3", "leave", "stop", "warn", "no-run"},
                   "what happens");
  flags.add_int("on-rank", &on_rank, zg::at_least(0), "to this rank", "RANK");
  flags.add_double("lr", &lr, zg::above(0), "learning rate");
  flags.add_double("step-ms", &step_ms, zg::at_least(0), "duration of a step", "MS");
  flags.add_strings("words", &words, "printed");
  zg::JobOptions defaults;
  defaults.steps = 3;
  zg::Job job = zg::Job::start(argc, argv, flags, defaults);

  std::signal(SIGUSR1, [](int) { got_usr1 = 1; });
  for (const std::string& word : words) zg::print_out(fmt::format("[{}]\n", word));
  if (action == "no-run") return job.size();
  job.run([&](zg::Job& rank) {
    zg::print_out(fmt::format("rank {} of {} is process {}, micro-batches {}\n", rank.rank(),
                              rank.size(), getpid(), rank.options().compile.micro_batches));
    if (const char* directory = std::getenv("TMPDIR"); directory != nullptr && rank.is_main()) {
      zg::print_out(fmt::format("temporary directory {}\n", directory));
    }
    const bool is_me = rank.rank() == on_rank;
    Misbehave(rank, action, is_me);
    if (action == "return-error" && is_me) return zg::DataLoss("something is broken");
    Train(rank, lr, step_ms);
    return zg::Status::Ok();
  });
  return 0;
}
