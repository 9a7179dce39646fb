// Threads: the threads of a rank that compute together, created once: the calling one and its
// workers.
//
//   Threads threads(2);
//   threads.Run(parts, [&](int64_t part, int thread) { ... });
//
// A result may depend on the parts, but never on which thread computes them. A run allocates
// nothing. An idle worker spins for a moment, and then sleeps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace zg {

// The processors that this process may run on.
int NumUsableCores();

class Threads {
 public:
  // `count` >= 1, including the calling thread.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return count_; }
  // The number of runs that more than one thread took part in.
  int64_t num_shared_runs() const { return num_shared_runs_; }

  // Calls work(part, thread) once for every part in [0, parts) and returns when all are done; the
  // caller then sees their writes. Part i < count() is for thread i, where the caller is thread 0;
  // a thread that is done takes the next of the other parts. Must be called from one thread at a
  // time, and not from within work.
  template <typename Work>
  void Run(int64_t parts, const Work& work) {
    RunJob({&work,
            [](const void* of, int64_t part, int thread) {
              (*static_cast<const Work*>(of))(part, thread);
            },
            parts});
  }

 private:
  struct Job {
    const void* work = nullptr;
    void (*call)(const void* work, int64_t part, int thread) = nullptr;
    int64_t parts = 0;
  };

  // Lets one thread wait for another.
  class Wait {
   public:
    // Must be called after the store that makes `is_over` true, which must be sequentially
    // consistent.
    void Notify();
    template <typename IsOver>
    void Until(const IsOver& is_over);

   private:
    std::atomic<bool> sleeps_{false};
    std::mutex mutex_;
    std::condition_variable wakes_;
  };

  struct alignas(64) Worker {
    std::atomic<uint64_t> num_jobs{0};  // given to this worker
    Wait wait;
    std::thread thread;
  };

  void RunJob(const Job& job);
  void DoParts(int thread);
  void Work(int thread);

  const int count_;
  const std::unique_ptr<Worker[]> workers_;  // threads 1, 2, ...
  Job job_;                                  // written only while no worker works
  bool ends_ = false;                        // likewise
  int64_t num_shared_runs_ = 0;
  Wait done_;
  alignas(64) std::atomic<int64_t> next_part_{0};
  alignas(64) std::atomic<int> num_working_{0};
};

}  // namespace zg
