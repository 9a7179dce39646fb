#include "framework/runtime/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
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
      return FailedPrecondition("--ranks: a directory in /tmp cannot be made: {}; mpirun needs one",
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

class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() { Close(); }
  void Close() {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// What mpirun writes comes through the launcher, because mpirun ends the job when it cannot write.
struct Pipe {
  static StatusOr<Pipe> Create() {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return FailedPrecondition("--ranks: a pipe to mpirun cannot be made: {}",
                                std::strerror(errno));
    }
    Pipe pipe{File(ends[0]), File(ends[1])};
    fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK);
    return pipe;
  }
  File read_end;
  File write_end;
};

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

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

void SetLauncherEnvironment(const std::string& private_directory) {
  setenv("TMPDIR", private_directory.c_str(), 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  setenv(kLauncherColumns, std::to_string(TerminalColumns()).c_str(), 1);
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
}

// The child's side of the fork.
[[noreturn]] void BecomeMpirun(const std::string& mpirun, std::vector<std::string> arguments,
                               const sigset_t& old_mask, const Pipe& output, const Pipe& errors,
                               pid_t launcher) {
  // A group of its own: the terminal's Ctrl-C reaches the launcher alone, which passes it on once.
  setpgid(0, 0);
  // mpirun ends the ranks when the launcher is killed.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != launcher) _exit(kCannotExecute);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
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

// Gives what there is in the pipe to `show`, and closes the pipe at its end.
template <typename Show>
void ReadAll(File* pipe, const Show& show) {
  char buffer[4096];
  while (pipe->get() >= 0) {
    const ssize_t count = read(pipe->get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return pipe->Close();
    show(std::string_view(buffer, static_cast<size_t>(count)));
  }
}

// Shows what the child writes and passes signals on to it until it has ended; returns its status
// from waitpid.
int WaitFor(pid_t child, const File& signals, File* output, File* errors) {
  MpirunMessages messages;
  const auto show_all = [&] {
    ReadAll(output, PrintOut);
    ReadAll(errors, [&](std::string_view bytes) { PrintError(messages.Filter(bytes)); });
  };
  int status = 0;
  while (true) {
    // A negative descriptor is left out by poll.
    pollfd waited_for[] = {
        {signals.get(), POLLIN, 0}, {output->get(), POLLIN, 0}, {errors->get(), POLLIN, 0}};
    if (poll(waited_for, std::size(waited_for), -1) < 0) continue;
    show_all();
    if (waited_for[0].revents == 0) continue;
    signalfd_siginfo info;
    if (read(signals.get(), &info, sizeof(info)) != sizeof(info)) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      if (waitpid(child, &status, WNOHANG) == child) break;
    } else {
      kill(child, signal == SIGHUP || signal == SIGQUIT ? SIGTERM : signal);
    }
  }
  show_all();
  PrintError(messages.Finish());
  return status;
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

StatusOr<int> LaunchRanks(int num_ranks, int argc, const char* const* argv) {
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
  ZG_ASSIGN_OR_RETURN(const PrivateDirectory directory, PrivateDirectory::Create());
  ZG_ASSIGN_OR_RETURN(Pipe output, Pipe::Create());
  ZG_ASSIGN_OR_RETURN(Pipe errors, Pipe::Create());

  const sigset_t handled = HandledSignals();
  sigset_t old_mask;
  sigprocmask(SIG_BLOCK, &handled, &old_mask);
  const File signals(signalfd(-1, &handled, SFD_CLOEXEC));
  const pid_t launcher = getpid();
  const pid_t child = signals.get() < 0 ? -1 : fork();
  if (child == 0) {
    SetLauncherEnvironment(directory.path());
    BecomeMpirun(mpirun, MpirunArguments(num_ranks, directory.path(), argc, argv), old_mask, output,
                 errors, launcher);
  }
  const int fork_error = errno;
  output.write_end.Close();
  errors.write_end.Close();
  const int status = child < 0 ? 0 : WaitFor(child, signals, &output.read_end, &errors.read_end);
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  if (child < 0) {
    return FailedPrecondition("--ranks: mpirun cannot be started: {}", std::strerror(fork_error));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace zg
