#include "tools/tune/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "framework/base/stopwatch.h"

namespace zg::tune {
namespace {

using Json = nlohmann::json;

constexpr int kCannotExecute = 126;

// The last error in a program's output, or else its last line.
class LastError {
 public:
  void Add(std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\n' && c != '\r') {
        line_ += c;
        continue;
      }
      EndLine();
    }
  }

  std::string Take() {
    EndLine();
    return error_.empty() ? last_ : error_;
  }

 private:
  void EndLine() {
    if (line_.find("error") != std::string::npos) error_ = line_;
    if (!line_.empty()) last_ = line_;
    line_.clear();
  }

  std::string line_, last_, error_;
};

[[noreturn]] void BecomeProgram(const std::vector<std::string>& command, pid_t parent,
                                const SignalQueue& signals, const Pipe& output,
                                const Pipe& errors) {
  setpgid(0, 0);  // signals of the terminal reach tune, which forwards them
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotExecute);
  signals.RestoreMask();
  signal(SIGPIPE, SIG_DFL);
  if (const int null = open("/dev/null", O_RDONLY); null >= 0) dup2(null, STDIN_FILENO);
  dup2(output.write_end.get(), STDOUT_FILENO);
  dup2(errors.write_end.get(), STDERR_FILENO);
  std::vector<std::string> arguments = command;
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  const std::string error = fmt::format("error: it cannot be started: {}\n", std::strerror(errno));
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, error.data(), error.size());
  _exit(kCannotExecute);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

StatusOr<Trial> ReadTrial(std::string_view report) {
  Trial trial;
  try {
    const Json json = Json::parse(report);
    const Json& config = json.at("config");
    trial.batch = config.at("batch").get<int64_t>();
    trial.micro_batches = config.at("micro-batches").get<int64_t>();
    trial.inputs = json.at("inputs").get<std::string>();
    for (const Json& bytes : json.at("memory").at("per_rank_peak")) {
      trial.peak_bytes = std::max(trial.peak_bytes, bytes.get<int64_t>());
    }
    for (const Json& step : json.at("steps")) trial.step_ms.push_back(step.at("ms").get<double>());
  } catch (const std::exception& error) {
    return DataLoss("its report is not one of a program with a Job: {}", error.what());
  }
  if (trial.step_ms.size() < 2) {
    return DataLoss("its report has {} steps, expected 2 or more", trial.step_ms.size());
  }
  trial.step_ms.erase(trial.step_ms.begin());
  return trial;
}

StatusOr<Trial> RunTrial(const std::vector<std::string>& command, const std::string& report,
                         double seconds, const Supervisor& supervisor) {
  ZG_ASSIGN_OR_RETURN(Pipe output, Pipe::Create());
  ZG_ASSIGN_OR_RETURN(Pipe errors, Pipe::Create());
  std::error_code error;
  std::filesystem::remove(report, error);
  const Stopwatch stopwatch;
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) return FailedPrecondition("fork: {}", std::strerror(errno));
  if (child == 0) BecomeProgram(command, self, supervisor.signals, output, errors);
  output.write_end.Close();
  errors.write_end.Close();
  LastError last_error;
  const auto is_there = [&] { return std::filesystem::exists(report, error); };
  const auto is_late = [&] { return stopwatch.ms() > seconds * 1e3; };
  ChildWatch watch;
  watch.pipes = {{&output.read_end, [](std::string_view) {}},
                 {&errors.read_end, [&](std::string_view bytes) { last_error.Add(bytes); }}};
  // A trial is also ended by INT, which a program may have been told to ignore.
  watch.translate = [](int signal) {
    return signal == SIGUSR1 || signal == SIGUSR2 ? signal : SIGTERM;
  };
  watch.is_enough = [&] { return is_there() || is_late(); };
  const ChildEnd end = WaitForChild(child, supervisor.signals, watch);
  if (end.was_stopped) return Aborted("stopped by a signal");
  if (is_there()) return ReadTrial(ReadFile(report));
  if (is_late()) return DeadlineExceeded("it did not end within {:.0f} s", seconds);
  const std::string said = last_error.Take();
  if (end.code == 0) {
    return FailedPrecondition(
        "it ended without a report (--report); expected a program with a Job{}",
        said.empty() ? "" : "; its last line: " + said);
  }
  return FailedPrecondition("it ended with exit code {}: {}", end.code,
                            said.empty() ? "it wrote nothing" : said);
}

}  // namespace zg::tune
