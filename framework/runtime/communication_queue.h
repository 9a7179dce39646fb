// CommunicationQueue: a thread that runs the collectives of one rank, one after the other in the order
// in which they are started, while the calling thread computes. A ticket stands for what was started
// up to there.
//
//   const int64_t ticket = queue.Start(&instruction, context);
//   ...                                       // computes beside it
//   ZG_RETURN_IF_ERROR(queue.Wait(ticket));
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/base/status.h"
#include "framework/kernels/kernel.h"
#include "framework/runtime/bound_program.h"
#include "framework/runtime/profile.h"

namespace zg {

class CommunicationQueue {
 public:
  // At most `capacity` are under way at a time; a start beyond that waits. Those of steps are told to
  // the profiler, if there is one.
  explicit CommunicationQueue(int capacity, Profiler* profiler = nullptr);
  // Waits for what was started.
  ~CommunicationQueue();
  CommunicationQueue(const CommunicationQueue&) = delete;
  CommunicationQueue& operator=(const CommunicationQueue&) = delete;

  // Runs the instruction's kernel; it must stay until that is done, and the context is copied.
  int64_t Start(const Instruction* instruction, const StepContext& context);

  // Waits for everything up to the ticket; 0: for nothing. Error: the first of all that ran, with
  // its step and node. What was started after that is not run.
  Status Wait(int64_t ticket);
  Status WaitForAll() { return Wait(num_started_); }

 private:
  struct Work {
    const Instruction* instruction = nullptr;
    StepContext context;
  };
  void Run();

  Profiler* const profiler_;
  std::vector<Work> ring_;
  std::mutex mutex_;
  std::condition_variable started_;
  std::condition_variable done_;
  int64_t num_started_ = 0;  // written by the calling thread alone
  int64_t num_done_ = 0;
  bool is_ending_ = false;
  Status error_;
  std::thread thread_;
};

}  // namespace zg
