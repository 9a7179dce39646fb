#include "framework/job/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

// How often to look whether the child has ended, too: SIGCHLD says so at once, but may be lost to a
// thread that does not block it, such as one that a library has started.
constexpr int kAskEveryMs = 20;

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Shows the current contents of the pipe, and closes the pipe at its end.
void ReadAll(const ShownPipe& shown) {
  char buffer[4096];
  while (shown.pipe->get() >= 0) {
    const ssize_t count = read(shown.pipe->get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return shown.pipe->Close();
    shown.show(std::string_view(buffer, static_cast<size_t>(count)));
  }
}

bool IsStop(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace

void File::Close() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

StatusOr<Pipe> Pipe::Create() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return FailedPrecondition("a pipe cannot be made: {}", std::strerror(errno));
  }
  Pipe pipe{File(ends[0]), File(ends[1])};
  fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

StatusOr<SignalQueue> SignalQueue::Create() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&signals, signal);
  }
  File file(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (file.get() < 0) {
    return FailedPrecondition("signals cannot be received: {}", std::strerror(errno));
  }
  sigset_t old_mask;
  sigprocmask(SIG_BLOCK, &signals, &old_mask);
  return SignalQueue(std::move(file), old_mask);
}

SignalQueue::~SignalQueue() {
  if (file_.get() >= 0) RestoreMask();
}

void SignalQueue::RestoreMask() const { sigprocmask(SIG_SETMASK, &old_mask_, nullptr); }

ChildEnd WaitForChild(pid_t child, const SignalQueue& signals, const ChildWatch& watch) {
  const auto read_all = [&] {
    for (const ShownPipe& shown : watch.pipes) ReadAll(shown);
  };
  int status = 0;
  bool was_stopped = false;
  std::optional<Clock::time_point> last_moment;
  while (true) {
    // poll ignores a negative descriptor.
    std::vector<pollfd> waited_for = {{signals.descriptor(), POLLIN, 0}};
    for (const ShownPipe& shown : watch.pipes) waited_for.push_back({shown.pipe->get(), POLLIN, 0});
    if (poll(waited_for.data(), waited_for.size(), kAskEveryMs) < 0) continue;
    read_all();
    if (!last_moment && watch.is_enough && watch.is_enough()) {
      last_moment = Clock::now() + Seconds(kLastSeconds);
      kill(child, SIGTERM);
    }
    if (!last_moment && watch.is_over()) last_moment = Clock::now() + Seconds(kLastSeconds);
    if (last_moment && Clock::now() >= *last_moment) kill(child, SIGKILL);
    signalfd_siginfo info;
    while (read(signals.descriptor(), &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      was_stopped |= IsStop(signal);
      kill(child, watch.translate(signal));
    }
    if (waitpid(child, &status, WNOHANG) == child) break;
  }
  read_all();
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), was_stopped};
}

bool SleepUnlessStopped(double seconds, const SignalQueue& signals) {
  const Clock::time_point end = Clock::now() + Seconds(seconds);
  while (true) {
    const double left_ms = std::chrono::duration<double, std::milli>(end - Clock::now()).count();
    if (left_ms <= 0) return true;
    pollfd waited_for = {signals.descriptor(), POLLIN, 0};
    if (poll(&waited_for, 1, static_cast<int>(std::ceil(left_ms))) <= 0) continue;
    signalfd_siginfo info;
    if (read(signals.descriptor(), &info, sizeof(info)) != sizeof(info)) continue;
    if (IsStop(static_cast<int>(info.ssi_signo))) return false;
  }
}

}  // namespace zg
