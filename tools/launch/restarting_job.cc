#include "tools/launch/restarting_job.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/format.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/checkpoint_store.h"
#include "framework/job/child_process.h"
#include "framework/job/console.h"
#include "framework/job/launcher.h"
#include "framework/job/rank_output.h"
#include "tools/command/program_arguments.h"
#include "tools/launch/restart_policy.h"

namespace zg::launch {
namespace {

using command::FlagIn;
using command::WithFlag;
using command::WithoutFlag;

constexpr double kPauseSeconds = 1;

void Say(const std::string& text) { print_error("launch: " + text + "\n"); }

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// A complete checkpoint, and its identity, which differs from another one under the same name.
struct Saved {
  std::string name;  // "step-00000100"
  ino_t file = 0;
  timespec time = {};
};

bool IsSame(const std::optional<Saved>& a, const std::optional<Saved>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->name == b->name && a->file == b->file && a->time.tv_sec == b->time.tv_sec &&
         a->time.tv_nsec == b->time.tv_nsec;
}

std::optional<Saved> LatestSaved(const std::string& directory) {
  if (directory.empty()) return std::nullopt;
  const std::optional<std::string> name = LatestCheckpoint(directory);
  struct stat info = {};
  if (!name || stat((directory + "/" + *name + "/" + kChecksumsName).c_str(), &info) != 0) {
    return std::nullopt;
  }
  return Saved{*name, info.st_ino, info.st_mtim};
}

struct Attempt {
  int ranks = 0;
  std::string from;  // "the beginning", "step-00000100"
  double seconds = 0;
  std::string end;
};

std::string Table(const std::vector<Attempt>& attempts) {
  std::string table = "attempt  ranks     time  from           end\n";
  for (size_t i = 0; i < attempts.size(); ++i) {
    const Attempt& attempt = attempts[i];
    table += fmt::format("{:<7}  {:>5}  {:>7}  {:<13}  {}\n", i + 1, attempt.ranks,
                         FormatDuration(attempt.seconds), attempt.from, attempt.end);
  }
  return table;
}

class RestartingJob {
 public:
  RestartingJob(const Options& options, const Supervisor& supervisor)
      : options_(options),
        supervisor_(supervisor),
        policy_(options.ranks, {options.max_restarts, options.min_ranks, options.micro_batches}),
        saved_before_(LatestSaved(options.save)),
        saved_(saved_before_) {}

  StatusOr<int> Run() {
    if (saved_before_ && !FlagIn(options_.command, "resume")) {
      Say(fmt::format("{} has {} of another job, which this one does not resume; --resume {} would",
                      options_.save, saved_before_->name, options_.save));
    }
    std::optional<int> num_ranks = options_.ranks;
    int code = 0;
    while (num_ranks) {
      ZG_ASSIGN_OR_RETURN(const AttemptEnd end, RunOnce(*num_ranks));
      code = end.code;
      num_ranks = policy_.Next(end);
      if (num_ranks) {
        Say(fmt::format("{} in {:g} s, from {}", policy_.why(), kPauseSeconds, WhereItBegins()));
        if (!SleepUnlessStopped(kPauseSeconds, supervisor_.signals)) {
          Say("stopped by a signal");
          break;
        }
      } else if (code != 0 || policy_.num_restarts() > 0) {
        Say(policy_.why());
      }
    }
    if (attempts_.size() > 1) print_error(Table(attempts_));
    return code;
  }

 private:
  bool HasOwnCheckpoint() const { return !IsSame(saved_, saved_before_); }

  std::string WhereItBegins() const {
    if (HasOwnCheckpoint()) return saved_->name;
    if (const auto resume = FlagIn(options_.command, "resume")) return *resume;
    return options_.save.empty() ? "the beginning: the program does not --save"
                                 : "the beginning: there is no checkpoint yet";
  }

  std::vector<std::string> Command(int num_ranks) const {
    std::vector<std::string> command = options_.command;
    // A checkpoint has its own parameters, and a program refuses --init beside it.
    if (HasOwnCheckpoint()) {
      command = WithoutFlag(WithFlag(command, "resume", options_.save), "init");
    }
    if (num_ranks != options_.ranks) {  // the same steps on fewer ranks
      command = WithFlag(command, "micro-batches", std::to_string(options_.micro_batches));
    }
    return command;
  }

  StatusOr<AttemptEnd> RunOnce(int num_ranks) {
    using Clock = std::chrono::steady_clock;
    Attempt attempt;
    attempt.ranks = num_ranks;
    attempt.from = WhereItBegins();
    attempt.from = attempt.from.substr(0, attempt.from.find(':'));
    RankOutput output;
    const Clock::time_point start = Clock::now();
    MpirunJob job;
    job.num_ranks = num_ranks;
    job.hosts = HostsFor(options_, num_ranks);
    job.command = Command(num_ranks);
    job.saves_at_term = !options_.save.empty();
    job.output = &output;
    ZG_ASSIGN_OR_RETURN(const MpirunEnd end, RunMpirun(job, supervisor_));
    attempt.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    attempt.end = Describe(end);
    attempts_.push_back(attempt);
    if (end.code != 0) Say(attempt.end);
    if (end.code != 0 && end.first_end) ShowLastLines(output, end.first_end->rank);

    const std::optional<Saved> saved_now = LatestSaved(options_.save);
    const bool has_saved = saved_now && !IsSame(saved_now, saved_);
    if (has_saved) saved_ = saved_now;
    return AttemptEnd{end.code, end.was_stopped, has_saved};
  }

  std::string Describe(const MpirunEnd& end) const {
    if (end.code == 0) return end.was_stopped ? "stopped by a signal, exit code 0" : "finished";
    if (!end.first_end && !end.lost_host.empty()) {
      return fmt::format("the connection to host {} was lost", end.lost_host);
    }
    if (!end.first_end) {
      const char* const signal = end.code > 128 ? strsignal(end.code - 128) : nullptr;
      return fmt::format("the job ended with exit code {}{}", end.code,
                         signal == nullptr ? "" : fmt::format(" ({})", signal));
    }
    std::string host = end.first_end->host;
    if (host.empty()) host = HostOfRank(options_, end.first_end->rank);
    if (host.empty()) host = HostName();
    return fmt::format("rank {} on host {} {}", end.first_end->rank, host, end.first_end->how);
  }

  void ShowLastLines(const RankOutput& output, int rank) const {
    const std::vector<std::string> lines = output.LastLines(rank);
    Say(lines.empty() ? fmt::format("rank {} has written nothing", rank)
                      : fmt::format("the last lines of rank {}:", rank));
    for (const std::string& line : lines) print_error(fmt::format("  | {}\n", line));
  }

  const Options& options_;
  const Supervisor& supervisor_;
  RestartPolicy policy_;
  const std::optional<Saved> saved_before_;  // left by an earlier job
  std::optional<Saved> saved_;
  std::vector<Attempt> attempts_;
};

}  // namespace

StatusOr<int> RunWithRestarts(const Options& options, const Supervisor& supervisor) {
  return RestartingJob(options, supervisor).Run();
}

}  // namespace zg::launch
