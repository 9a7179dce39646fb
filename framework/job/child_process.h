// Supervision of a child process: forwards signals to it, shows its output and waits for its end.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"

namespace zg {

// An open file descriptor, closed by the destructor; -1: none.
class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() { Close(); }
  int get() const { return descriptor_; }
  void Close();

 private:
  int descriptor_;
};

// Reads do not block. exec closes both ends.
struct Pipe {
  static StatusOr<Pipe> Create();
  File read_end;
  File write_end;
};

// While it exists, the signals that end or control a job (INT, TERM, HUP, QUIT, USR1, USR2) and
// SIGCHLD wait in a queue. Must be created before there are threads and before the child.
class SignalQueue {
 public:
  static StatusOr<SignalQueue> Create();
  SignalQueue(SignalQueue&&) noexcept = default;
  ~SignalQueue();

  int descriptor() const { return file_.get(); }
  // For the child, before exec.
  void RestoreMask() const;

 private:
  SignalQueue(File file, const sigset_t& old_mask) : file_(std::move(file)), old_mask_(old_mask) {}
  File file_;
  sigset_t old_mask_;
};

// A pipe to read until its end, and the receiver of its bytes.
struct ShownPipe {
  File* pipe;
  std::function<void(std::string_view bytes)> show;
};

struct ChildEnd {
  int code = 0;              // exit code; 128 + the signal for a killed child
  bool was_stopped = false;  // INT, TERM, HUP or QUIT was received
};

// Maps a received signal to the one that the child gets.
using SignalTranslation = std::function<int(int signal)>;

// The supervision of a running child.
struct ChildWatch {
  SignalTranslation translate = [](int signal) { return signal; };
  std::vector<ShownPipe> pipes;
  // Once this returns true, the child is killed after kLastSeconds.
  std::function<bool()> is_over = [] { return false; };
  // Called about 50 times a second, if set. Once it returns true the child gets TERM, and is killed
  // after kLastSeconds.
  std::function<bool()> is_enough = {};
};
inline constexpr double kLastSeconds = 8;  // no process outlives a job by more than 10 s

// Forwards signals to the child and shows the pipes until it has ended.
ChildEnd WaitForChild(pid_t child, const SignalQueue& signals, const ChildWatch& watch = {});

// Sleeps for this time. Returns false at once if a signal asks for an end; drops other signals.
bool SleepUnlessStopped(double seconds, const SignalQueue& signals);

}  // namespace zg
