// WithoutSignals: while it exists, the calling thread and those that it starts get no signals. Threads
// that are started meanwhile never do, so that signals reach the thread that handles them.
#pragma once

#include <csignal>

namespace zg {

class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace zg
