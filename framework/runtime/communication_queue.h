// CommunicationQueue: a thread that runs the collectives of one rank one after the other, in the
// order in which they are started, while the calling thread computes. A ticket stands for
// everything that was started up to that point.
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
  // At most `capacity` collectives are in flight at a time; a further start waits. Collectives of
  // steps are reported to the profiler, if there is one.
  explicit CommunicationQueue(int capacity, Profiler* profiler = nullptr);
  // Waits for all started collectives.
  ~CommunicationQueue();
  CommunicationQueue(const CommunicationQueue&) = delete;
  CommunicationQueue& operator=(const CommunicationQueue&) = delete;

  // Runs the instruction's kernel. The instruction must exist until that is done; the context is
  // copied.
  int64_t Start(const Instruction* instruction, const StepContext& context);

  // Waits for everything up to the ticket; 0: for nothing. Error: the first one so far, with its
  // step and node. Collectives started after an error are not run.
  Status Wait(int64_t ticket);
  // That of everything started so far.
  int64_t last_ticket() const { return num_started_; }

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
  int64_t num_started_ = 0;  // written only by the calling thread
  int64_t num_done_ = 0;
  bool is_ending_ = false;
  Status error_;
  std::thread thread_;
};

}  // namespace zg
