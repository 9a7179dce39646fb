// Fibers: cooperative threads that take turns on one thread of the host; each runs until it
// suspends itself.
#pragma once

#include <setjmp.h>

#include <cstddef>
#include <cstdint>

namespace zg::emulation {

class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{64} << 10;
  using Body = void (*)(const void* argument);

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume() begins body(argument). The fiber's previous work is discarded.
  void Begin(Body body, const void* argument);
  // Runs the body until it ends (true) or suspends itself (false).
  bool Resume();
  // Called from within the body: returns to the caller of Resume().
  void Suspend();

  uintptr_t stack() const { return stack_; }

 private:
  void RunBodies();
  static void Enter();

  uintptr_t stack_;  // above a guard page
  Body body_ = nullptr;
  const void* argument_ = nullptr;
  bool is_entered_ = false;  // Enter() runs on the stack
  bool is_busy_ = false;     // within a body
  jmp_buf inside_;
  jmp_buf outside_;
};

}  // namespace zg::emulation
