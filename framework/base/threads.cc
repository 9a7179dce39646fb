#include "framework/base/threads.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "framework/base/check.h"
#include "framework/base/without_signals.h"

namespace zg {
namespace {

// Kernels follow each other within microseconds. If cores are scarce, a waiting thread yields to
// the others before it sleeps.
constexpr int kNumPauses = 400;  // 20 us
constexpr std::chrono::microseconds kYields(200);

void PauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

int NumUsableCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return CPU_COUNT(&cores);
}

void Threads::Wait::Notify() {
  // Sequentially consistent, as in Until: either this sees the sleeper or the sleeper sees the new
  // state.
  if (!sleeps_.load()) return;
  { const std::lock_guard<std::mutex> lock(mutex_); }
  wakes_.notify_one();
}

template <typename IsOver>
void Threads::Wait::Until(const IsOver& is_over) {
  for (int i = 0; i < kNumPauses; ++i) {
    if (is_over()) return;
    PauseCore();
  }
  const auto end = std::chrono::steady_clock::now() + kYields;
  while (std::chrono::steady_clock::now() < end) {
    if (is_over()) return;
    sched_yield();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  sleeps_.store(true);
  wakes_.wait(lock, is_over);
  sleeps_.store(false);
}

Threads::Threads(int count) : count_(count), workers_(count > 1 ? new Worker[count - 1] : nullptr) {
  ZG_CHECK(count >= 1, "{} threads", count);
  const WithoutSignals without_signals;
  for (int i = 1; i < count; ++i) {
    workers_[i - 1].thread = std::thread([this, i] { Work(i); });
  }
}

Threads::~Threads() {
  ends_ = true;
  for (int i = 1; i < count_; ++i) {
    Worker& worker = workers_[i - 1];
    worker.num_jobs.fetch_add(1);
    worker.wait.Notify();
    worker.thread.join();
  }
}

void Threads::RunJob(const Job& job) {
  const int num_threads = static_cast<int>(std::min<int64_t>(job.parts, count_));
  if (num_threads <= 1) {
    for (int64_t part = 0; part < job.parts; ++part) job.call(job.work, part, 0);
    return;
  }
  ++num_shared_runs_;
  job_ = job;
  next_part_.store(num_threads, std::memory_order_relaxed);
  num_working_.store(num_threads - 1, std::memory_order_relaxed);
  for (int i = 1; i < num_threads; ++i) {
    workers_[i - 1].num_jobs.fetch_add(1);
    workers_[i - 1].wait.Notify();
  }
  DoParts(0);
  done_.Until([this] { return num_working_.load() == 0; });
}

void Threads::DoParts(int thread) {
  for (int64_t part = thread; part < job_.parts;
       part = next_part_.fetch_add(1, std::memory_order_relaxed)) {
    job_.call(job_.work, part, thread);
  }
}

void Threads::Work(int thread) {
  Worker& worker = workers_[thread - 1];
  for (uint64_t num_done = 0;; ++num_done) {
    worker.wait.Until([&] { return worker.num_jobs.load() > num_done; });
    if (ends_) return;
    DoParts(thread);
    if (num_working_.fetch_sub(1) == 1) done_.Notify();
  }
}

}  // namespace zg
