#include "framework/job/launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "framework/job/child_process.h"
#include "framework/job/console.h"
#include "framework/job/mpirun_messages.h"

namespace zg {
namespace {

constexpr int kCannotExecute = 126;

// The value of the first of these variables that is set to a number.
std::optional<int> NumberFromEnvironment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const text = std::getenv(name);
    if (text == nullptr) continue;
    int number = 0;
    const char* const end = text + std::strlen(text);
    const auto [parsed_to, error] = std::from_chars(text, end, number);
    if (error == std::errc() && parsed_to == end) return number;
  }
  return std::nullopt;
}

// Open MPI keeps its sockets and shared-memory files there: with private names two jobs never
// collide, and a killed rank leaves nothing behind. It is directly in /tmp because the name of a
// socket must fit into 108 bytes.
StatusOr<std::string> MakePrivateDirectory() {
  std::string path = "/tmp/zg.XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return FailedPrecondition("a directory in /tmp cannot be made: {}; mpirun needs one",
                              std::strerror(errno));
  }
  return path;
}

void RemoveDirectory(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// The descendants whose own parents were killed, and which this process has adopted: they write into
// the private directory until they have ended.
void WaitForOrphans() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kLastSeconds);
  while (std::chrono::steady_clock::now() < end) {
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return;
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Inside Bazel's runfiles a program finds its files by argv[0]; a bare name came from PATH.
std::string ProgramPath(const char* argv0) {
  std::string program = argv0;
  if (program.find('/') == std::string::npos) program = "/proc/self/exe";
  if (program == "/proc/self/exe") {
    std::error_code error;
    const std::filesystem::path resolved = std::filesystem::read_symlink(program, error);
    if (!error) program = resolved.string();
  }
  return program;
}

using Settings = std::vector<std::pair<std::string, std::string>>;  // of Open MPI's components

Settings OneHostSettings(const std::string& private_directory) {
  return {{"ras", "^alps,gridengine,lsf,slurm,tm"},
          {"plm", "isolated"},
          // Only shared memory: no messages about network devices, and a third faster to start.
          {"pml", "ob1"},
          {"btl", "vader,self"},
          // Containers may forbid reading another process's memory, which would be noticed only
          // during a run.
          {"btl_vader_single_copy_mechanism", "none"},
          {"btl_vader_backing_directory", private_directory},
          {"osc_sm_backing_directory", private_directory}};
}

// mpirun pings a silent host after 6 s, and considers it lost after 4 s more, not after hours.
Settings SeveralHostsSettings() {
  return {{"oob_tcp_keepalive_time", "6"},
          {"oob_tcp_keepalive_intvl", "1"},
          {"oob_tcp_keepalive_probes", "4"}};
}

std::vector<std::string> MpirunArguments(const MpirunJob& job,
                                         const std::string& private_directory) {
  const bool is_one_host = job.hosts.empty();
  const std::string num_ranks = std::to_string(job.num_ranks);
  std::vector<std::string> arguments = {
      "mpirun",  // without its path, which mpirun would take as an installation prefix
      "-n",
      num_ranks,
      // Only this host, also inside an allocation of several, and as many ranks as requested.
      "--host",
      is_one_host ? "localhost:" + num_ranks : job.hosts,
      "--oversubscribe",
      // Jobs that bind all start at core 0, so that two of them would share cores while others
      // idle.
      "--bind-to",
      "none",
  };
  Settings settings = is_one_host ? OneHostSettings(private_directory) : SeveralHostsSettings();
  settings.emplace_back("mpi_yield_when_idle", "1");
  for (const auto& [name, value] : settings) {
    arguments.insert(arguments.end(), {"--mca", name, value});
  }
  if (!is_one_host) {  // ranks on other hosts get only the named variables
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      if (text.substr(0, 3) != "ZG_" && text.substr(0, 4) != "OMP_") continue;
      arguments.insert(arguments.end(), {"-x", std::string(text.substr(0, text.find('=')))});
    }
  }
  if (job.output != nullptr) arguments.push_back("--tag-output");
  arguments.insert(arguments.end(), job.command.begin(), job.command.end());
  return arguments;
}

Status CheckCommand(const std::vector<std::string>& command) {
  for (const std::string& argument : command) {
    if (argument == ":") {
      return InvalidArgument("':' as an argument of its own means something to mpirun");
    }
  }
  return Status::Ok();
}

void SetRankEnvironment(const std::string& private_directory, int columns) {
  setenv("TMPDIR", private_directory.c_str(), 1);
  setenv(kLauncherColumns, std::to_string(columns).c_str(), 1);
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
}

// The first actions of a child: it ends when its parent is killed, and gets no signals from the
// terminal, which reach the launcher and are forwarded from there, once.
void FollowParent(pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotExecute);
}

[[noreturn]] void BecomeMpirun(const std::string& mpirun, std::vector<std::string> arguments,
                               const SignalQueue& signals, const Pipe& output, const Pipe& errors) {
  signals.RestoreMask();
  signal(SIGPIPE, SIG_DFL);
  // mpirun would forward standard input to rank 0, and would stop for it in the background.
  if (const int null = open("/dev/null", O_RDONLY); null >= 0) dup2(null, STDIN_FILENO);
  dup2(output.write_end.get(), STDOUT_FILENO);
  dup2(errors.write_end.get(), STDERR_FILENO);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(mpirun.c_str(), pointers.data());
  print_error(fmt::format("error: {}: {}\n", mpirun, std::strerror(errno)));
  _exit(kCannotExecute);
}

// Maps the signals of the supervisor to those sent to mpirun.
class SignalsForMpirun {
 public:
  // `has_begun` is true once ranks have shown something, and must outlive it: before, they may not be able
  // to take USR2 yet, and have nothing to save.
  SignalsForMpirun(pid_t launcher, bool saves_at_term, const bool* has_begun)
      : launcher_(launcher), saves_at_term_(saves_at_term), has_begun_(has_begun) {}

  int operator()(int signal) {
    if (signal == SIGHUP || signal == SIGQUIT) return SIGTERM;
    // If the launcher was killed, or at the second TERM, it must end at once.
    const bool saves = saves_at_term_ && *has_begun_ && getppid() == launcher_;
    if (signal != SIGTERM || !saves) return signal;
    saves_at_term_ = false;
    return SIGUSR2;
  }

 private:
  const pid_t launcher_;
  bool saves_at_term_;
  const bool* const has_begun_;
};

}  // namespace

std::optional<MpiJob> FindMpiJob() {
  // Open MPI's mpirun; a PMIx server such as Slurm's; the older interface of MPICH and Slurm.
  const auto rank = NumberFromEnvironment({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
  if (!rank) return std::nullopt;
  return MpiJob{*rank, NumberFromEnvironment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}).value_or(0)};
}

std::optional<std::string> FindOnPath(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
    std::string candidate = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error) &&
        access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return std::nullopt;
}

StatusOr<std::string> FindMpirun() {
  if (std::optional<std::string> found = FindOnPath("mpirun")) return *std::move(found);
  return FailedPrecondition(
      "--ranks: there is no mpirun on PATH, which starts the ranks; install the package "
      "openmpi-bin (tools/setup.sh does), or run with --ranks 1");
}

// mpirun's output goes through this process, because mpirun ends the job when it cannot write.
StatusOr<MpirunEnd> RunMpirun(const MpirunJob& job, const Supervisor& supervisor) {
  ZG_RETURN_IF_ERROR(CheckCommand(job.command));
  ZG_ASSIGN_OR_RETURN(const std::string mpirun, FindMpirun());
  ZG_ASSIGN_OR_RETURN(Pipe output, Pipe::Create());
  ZG_ASSIGN_OR_RETURN(Pipe errors, Pipe::Create());
  const pid_t launcher = getppid();
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) return FailedPrecondition("fork: {}", std::strerror(errno));
  if (child == 0) {
    FollowParent(self);
    // A bar is redrawn within a line, so it cannot be filtered line by line.
    SetRankEnvironment(supervisor.directory, job.output == nullptr ? TerminalColumns() : 0);
    BecomeMpirun(mpirun, MpirunArguments(job, supervisor.directory), supervisor.signals, output,
                 errors);
  }
  output.write_end.Close();
  errors.write_end.Close();

  RankOutput* const ranks = job.output;
  MpirunMessages messages;
  bool has_begun = false;
  const auto show_output = [&](std::string_view bytes) {
    has_begun = true;
    print_out(ranks == nullptr ? bytes : ranks->Filter(RankOutput::kOutput, bytes));
  };
  const auto show_errors = [&](std::string_view bytes) {
    print_error(
        messages.Filter(ranks == nullptr ? bytes : ranks->Filter(RankOutput::kErrors, bytes)));
  };
  // mpirun may wait for a lost host forever.
  const auto is_over = [&] { return messages.first_end() || !messages.lost_host().empty(); };
  const ChildEnd end =
      WaitForChild(child, supervisor.signals,
                   {SignalsForMpirun(launcher, job.saves_at_term, &has_begun),
                    {{&output.read_end, show_output}, {&errors.read_end, show_errors}},
                    is_over});
  if (ranks != nullptr) {
    print_out(ranks->Finish(RankOutput::kOutput));
    print_error(messages.Filter(ranks->Finish(RankOutput::kErrors)));
  }
  print_error(messages.Finish());
  MpirunEnd result{end.code, end.was_stopped, messages.first_end(), messages.lost_host()};
  // mpirun 4.1 sometimes loses its box about an abort, although the rank has printed its error.
  const bool is_unexplained = end.code != 0 && !result.first_end && result.lost_host.empty();
  if (is_unexplained && ranks != nullptr && ranks->first_rank_with_error()) {
    result.first_end = RankEnd{*ranks->first_rank_with_error(), "", kEndedTheJob};
  }
  return result;
}

StatusOr<int> RunSupervised(std::string_view context,
                            const std::function<StatusOr<int>(const Supervisor&)>& body) {
  ZG_ASSIGN_OR_RETURN(const SignalQueue signals, SignalQueue::Create());
  ZG_ASSIGN_OR_RETURN(const std::string directory, MakePrivateDirectory());
  const pid_t launcher = getpid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t supervisor = fork();
  if (supervisor < 0) {
    const Status status = FailedPrecondition("fork: {}", std::strerror(errno));
    RemoveDirectory(directory);
    return status;
  }
  if (supervisor == 0) {
    FollowParent(launcher);
    signals.RestoreMask();
    const StatusOr<int> code = [&]() -> StatusOr<int> {
      ZG_ASSIGN_OR_RETURN(SignalQueue own_signals, SignalQueue::Create());
      return body(Supervisor{std::move(own_signals), directory});
    }();
    RemoveDirectory(directory);
    if (!code.ok()) print_error(fmt::format("error: {}{}\n", context, code.status().message()));
    _exit(code.ok() ? *code : 1);
  }
  const int code = WaitForChild(supervisor, signals).code;
  WaitForOrphans();
  RemoveDirectory(directory);
  return code;
}

StatusOr<int> LaunchRanks(const LaunchOptions& options, int argc, const char* const* argv) {
  ZG_ASSIGN_OR_RETURN(const std::string mpirun, FindMpirun());
  if (std::getenv(kLauncherColumns) != nullptr) {
    return FailedPrecondition(
        "--ranks: {} started this program, but not as a rank of an MPI job; expected the mpirun "
        "of Open MPI (package openmpi-bin)",
        mpirun);
  }
  MpirunJob job;
  job.num_ranks = options.num_ranks;
  job.saves_at_term = options.saves_at_term;
  job.command = {ProgramPath(argv[0])};
  job.command.insert(job.command.end(), argv + 1, argv + argc);
  ZG_RETURN_IF_ERROR(CheckCommand(job.command));
  return RunSupervised("--ranks: ", [&](const Supervisor& supervisor) -> StatusOr<int> {
    ZG_ASSIGN_OR_RETURN(const MpirunEnd end, RunMpirun(job, supervisor));
    return end.code;
  });
}

}  // namespace zg
