#include "tests/cuda_emulation/fibers.h"

#include <sys/mman.h>
#include <ucontext.h>

#include "framework/base/check.h"

namespace zg::emulation {
namespace {

constexpr size_t kGuardBytes = 4096;
Fiber* entered = nullptr;  // by Enter(), which takes no argument

}  // namespace

Fiber::Fiber() {
  void* const memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ZG_CHECK(memory != MAP_FAILED, "no memory for a stack");
  ZG_CHECK(mprotect(memory, kGuardBytes, PROT_NONE) == 0, "no guard for a stack");
  stack_ = reinterpret_cast<uintptr_t>(memory) + kGuardBytes;
}

Fiber::~Fiber() {
  munmap(reinterpret_cast<void*>(stack_ - kGuardBytes), kGuardBytes + kStackBytes);
}

void Fiber::Begin(Body body, const void* argument) {
  body_ = body;
  argument_ = argument;
  if (is_busy_) is_entered_ = false;
  is_busy_ = true;
}

// Entering a context for the first time costs a system call; afterwards jumps are enough.
bool Fiber::Resume() {
  if (_setjmp(outside_) == 0) {
    if (is_entered_) _longjmp(inside_, 1);
    is_entered_ = true;
    entered = this;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = reinterpret_cast<void*>(stack_);
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, &Fiber::Enter, 0);
    setcontext(&context);
  }
  return !is_busy_;
}

void Fiber::Suspend() {
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
}

void Fiber::Enter() { entered->RunBodies(); }

void Fiber::RunBodies() {
  for (;;) {
    body_(argument_);
    is_busy_ = false;
    Suspend();
  }
}

}  // namespace zg::emulation
