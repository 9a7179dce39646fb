#include "framework/runtime/launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/runtime/child_process.h"
#include "framework/runtime/console.h"
#include "framework/runtime/mpirun_messages.h"

namespace zg {
namespace {

constexpr int kCannotExecute = 126;

// The number in the first of these variables that is set and is one.
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

// Removed with everything in it by the destructor. Open MPI keeps its sockets and shared-memory
// files there: under a name of its own two jobs never meet, and a killed rank leaves nothing
// behind. Directly in /tmp because the name of a socket must fit in 108 bytes.
class PrivateDirectory {
 public:
  static StatusOr<PrivateDirectory> Create() {
    std::string path = "/tmp/zg.XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
      return FailedPrecondition("a directory in /tmp cannot be made: {}; mpirun needs one",
                                std::strerror(errno));
    }
    return PrivateDirectory(std::move(path));
  }
  PrivateDirectory(PrivateDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit PrivateDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

std::vector<std::string> MpirunArguments(int num_ranks, const std::string& private_directory,
                                         int argc, const char* const* argv) {
  // Inside Bazel's runfiles a program finds its files by argv[0]; a bare name came from PATH.
  std::string program = argv[0];
  if (program.find('/') == std::string::npos) program = "/proc/self/exe";
  if (program == "/proc/self/exe") {
    std::error_code error;
    const std::filesystem::path resolved = std::filesystem::read_symlink(program, error);
    if (!error) program = resolved.string();
  }
  std::vector<std::string> arguments = {
      "mpirun",  // without its path, which would be an installation prefix to it
      "-n",
      std::to_string(num_ranks),
      // This host alone, also inside an allocation of several, and as many ranks as asked for.
      "--host",
      "localhost:" + std::to_string(num_ranks),
      "--oversubscribe",
      // Jobs that bind start at core 0 each, so that two of them share cores while others idle.
      "--bind-to",
      "none",
  };
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
           {"ras", "^alps,gridengine,lsf,slurm,tm"},
           {"plm", "isolated"},
           // Only shared memory: quiet about network devices, and a third faster to start.
           {"pml", "ob1"},
           {"btl", "vader,self"},
           // Containers may forbid reading another process's memory, which is found out mid-run.
           {"btl_vader_single_copy_mechanism", "none"},
           {"btl_vader_backing_directory", private_directory},
           {"osc_sm_backing_directory", private_directory},
           {"mpi_yield_when_idle", "1"}}) {
    arguments.insert(arguments.end(), {"--mca", name, value});
  }
  arguments.push_back(program);
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  return arguments;
}

void SetRankEnvironment(const std::string& private_directory) {
  setenv("TMPDIR", private_directory.c_str(), 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  setenv(kLauncherColumns, std::to_string(TerminalColumns()).c_str(), 1);
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
}

// What a child does first: it ends when its parent is killed, and gets no signals from the
// terminal, which reach the launcher and are passed on from there, once.
void FollowParent(pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotExecute);
}

[[noreturn]] void BecomeMpirun(const std::string& mpirun, std::vector<std::string> arguments,
                               const SignalQueue& signals, const Pipe& output, const Pipe& errors) {
  signals.RestoreMask();
  signal(SIGPIPE, SIG_DFL);
  // mpirun would hand standard input to rank 0, and stop for it when in the background.
  if (const int null = open("/dev/null", O_RDONLY); null >= 0) dup2(null, STDIN_FILENO);
  dup2(output.write_end.get(), STDOUT_FILENO);
  dup2(errors.write_end.get(), STDERR_FILENO);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(mpirun.c_str(), pointers.data());
  PrintError(fmt::format("error: {}: {}\n", mpirun, std::strerror(errno)));
  _exit(kCannotExecute);
}

// What mpirun gets for the signals of the supervisor.
class SignalsForMpirun {
 public:
  SignalsForMpirun(pid_t launcher, bool saves_at_term)
      : launcher_(launcher), saves_at_term_(saves_at_term) {}

  int operator()(int signal) {
    if (signal == SIGHUP || signal == SIGQUIT) return SIGTERM;
    // When the launcher was killed, or at the second TERM, it is to end at once.
    if (signal != SIGTERM || !saves_at_term_ || getppid() != launcher_) return signal;
    saves_at_term_ = false;
    return SIGUSR2;
  }

 private:
  const pid_t launcher_;
  bool saves_at_term_;
};

// Runs mpirun in a private directory and removes that. Its output comes through here, because
// mpirun ends the job when it cannot write.
StatusOr<int> Supervise(const std::string& mpirun, const LaunchOptions& options, pid_t launcher,
                        int argc, const char* const* argv) {
  ZG_ASSIGN_OR_RETURN(const SignalQueue signals, SignalQueue::Create());
  ZG_ASSIGN_OR_RETURN(const PrivateDirectory directory, PrivateDirectory::Create());
  ZG_ASSIGN_OR_RETURN(Pipe output, Pipe::Create());
  ZG_ASSIGN_OR_RETURN(Pipe errors, Pipe::Create());
  const pid_t supervisor = getpid();
  const pid_t child = fork();
  if (child < 0) return FailedPrecondition("fork: {}", std::strerror(errno));
  if (child == 0) {
    FollowParent(supervisor);
    SetRankEnvironment(directory.path());
    BecomeMpirun(mpirun, MpirunArguments(options.num_ranks, directory.path(), argc, argv), signals,
                 output, errors);
  }
  output.write_end.Close();
  errors.write_end.Close();
  MpirunMessages messages;
  const int code = WaitForChild(
      child, signals, SignalsForMpirun(launcher, options.saves_at_term),
      {&output.read_end, PrintOut},
      {&errors.read_end, [&](std::string_view bytes) { PrintError(messages.Filter(bytes)); }});
  PrintError(messages.Finish());
  return code;
}

}  // namespace

std::optional<MpiJob> FindMpiJob() {
  // Open MPI's mpirun; a PMIx server such as Slurm's; MPICH's and Slurm's older interface.
  const auto rank = NumberFromEnvironment({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
  if (!rank) return std::nullopt;
  return MpiJob{*rank, NumberFromEnvironment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}).value_or(0)};
}

StatusOr<std::string> FindMpirun() {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
    std::string candidate = fmt::format("{}/mpirun", directory.empty() ? "." : directory);
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error) &&
        access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return FailedPrecondition(
      "--ranks: there is no mpirun on PATH, which starts the ranks; install the package "
      "openmpi-bin (tools/setup.sh does), or run with --ranks 1");
}

StatusOr<int> LaunchRanks(const LaunchOptions& options, int argc, const char* const* argv) {
  ZG_ASSIGN_OR_RETURN(const std::string mpirun, FindMpirun());
  if (std::getenv(kLauncherColumns) != nullptr) {
    return FailedPrecondition(
        "--ranks: {} started this program, but not as a rank of an MPI job; expected the mpirun "
        "of Open MPI (package openmpi-bin)",
        mpirun);
  }
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == ":") {
      return InvalidArgument("':' as an argument of its own means something to mpirun");
    }
  }
  ZG_ASSIGN_OR_RETURN(const SignalQueue signals, SignalQueue::Create());
  const pid_t launcher = getpid();
  const pid_t supervisor = fork();
  if (supervisor < 0) return FailedPrecondition("--ranks: fork: {}", std::strerror(errno));
  if (supervisor == 0) {
    // A process of its own, so that somebody cleans up when the launcher is killed.
    FollowParent(launcher);
    signals.RestoreMask();
    const StatusOr<int> code = Supervise(mpirun, options, launcher, argc, argv);
    if (!code.ok()) PrintError(fmt::format("error: --ranks: {}\n", code.status().message()));
    _exit(code.ok() ? *code : 1);
  }
  return WaitForChild(supervisor, signals);
}

}  // namespace zg
