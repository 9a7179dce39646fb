#include "framework/job/save_signals.h"

#include <atomic>
#include <csignal>
#include <mutex>

namespace zg {
namespace {

std::atomic<int> num_save_requests_seen{0};
std::atomic<bool> end_request_seen{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void CountSaveRequest(int) { ++num_save_requests_seen; }
void NoteEndRequest(int) { end_request_seen = true; }

// The handlers of this process, shared by its SaveSignals.
struct Handlers {
  std::mutex mutex;
  int num_users = 0;
  int num_savers = 0;        // users with a place to save
  int num_requests_met = 0;  // seen while objects existed that are now destroyed
  struct sigaction old_usr1 = {};
  struct sigaction old_usr2 = {};
  struct sigaction old_term = {};
};

Handlers& SharedHandlers() {
  static Handlers handlers;
  return handlers;
}

void Handle(int signal, void (*handler)(int), int flags, struct sigaction* old) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, old);
}

}  // namespace

SaveSignals::SaveSignals(bool saves) : saves_(saves) {
  Handlers& handlers = SharedHandlers();
  const std::lock_guard<std::mutex> lock(handlers.mutex);
  if (handlers.num_users++ == 0) {
    num_save_requests_seen = 0;
    handlers.num_requests_met = 0;
    Handle(SIGUSR1, CountSaveRequest, SA_RESTART, &handlers.old_usr1);
  }
  num_requests_before_ = handlers.num_requests_met;
  if (saves_ && handlers.num_savers++ == 0) {
    end_request_seen = false;
    const int once = static_cast<int>(SA_RESTART | SA_RESETHAND);
    Handle(SIGUSR2, NoteEndRequest, once, &handlers.old_usr2);
    Handle(SIGTERM, NoteEndRequest, once, &handlers.old_term);
  }
}

SaveSignals::~SaveSignals() {
  Handlers& handlers = SharedHandlers();
  const std::lock_guard<std::mutex> lock(handlers.mutex);
  handlers.num_requests_met = num_save_requests_seen;
  if (saves_ && --handlers.num_savers == 0) {
    sigaction(SIGUSR2, &handlers.old_usr2, nullptr);
    sigaction(SIGTERM, &handlers.old_term, nullptr);
  }
  if (--handlers.num_users == 0) sigaction(SIGUSR1, &handlers.old_usr1, nullptr);
}

int SaveSignals::num_save_requests() const { return num_save_requests_seen - num_requests_before_; }

bool SaveSignals::is_end_requested() const { return end_request_seen; }

}  // namespace zg
