#include "framework/runtime/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace zg {
namespace {

// Shows what there is in the pipe by now, and closes the pipe at its end.
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
  File file(signalfd(-1, &signals, SFD_CLOEXEC));
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

int WaitForChild(pid_t child, const SignalQueue& signals, const SignalTranslation& translate,
                 const ShownPipe& first, const ShownPipe& second) {
  int status = 0;
  while (true) {
    // poll leaves a negative descriptor out.
    pollfd waited_for[] = {{signals.descriptor(), POLLIN, 0},
                           {first.pipe->get(), POLLIN, 0},
                           {second.pipe->get(), POLLIN, 0}};
    if (poll(waited_for, std::size(waited_for), -1) < 0) continue;
    ReadAll(first);
    ReadAll(second);
    if (waited_for[0].revents == 0) continue;
    signalfd_siginfo info;
    if (read(signals.descriptor(), &info, sizeof(info)) != sizeof(info)) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      if (waitpid(child, &status, WNOHANG) == child) break;
    } else {
      kill(child, translate(signal));
    }
  }
  ReadAll(first);
  ReadAll(second);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int WaitForChild(pid_t child, const SignalQueue& signals) {
  File none;
  const ShownPipe nothing = {&none, [](std::string_view) {}};
  const SignalTranslation as_it_came = [](int signal) { return signal; };
  return WaitForChild(child, signals, as_it_came, nothing, nothing);
}

}  // namespace zg
