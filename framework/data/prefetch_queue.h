// PrefetchQueue: items 0, 1, 2, ... of a sequence, prepared by a thread of its own before they are
// requested, in a fixed number of slots.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/catch_exceptions.h"
#include "framework/base/status.h"

namespace zg {

template <typename Item>
class PrefetchQueue {
 public:
  using Make = std::function<Status(int64_t index, Item* item)>;

  // The first item has the index `first`. `make` is called in order, on one thread, until it fails
  // or the queue is destroyed.
  PrefetchQueue(int64_t first, int depth, Make make)
      : slots_(static_cast<size_t>(depth) + 1),  // one is in use by the caller
        first_(first),
        make_(std::move(make)),
        thread_([this] { Run(); }) {}

  PrefetchQueue(const PrefetchQueue&) = delete;

  ~PrefetchQueue() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      must_end_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Waits for the next item, which does not change until the next call. After an error all calls
  // return it.
  StatusOr<const Item*> Next() {
    std::unique_lock<std::mutex> lock(mutex_);
    num_freed_ = num_taken_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return num_made_ > num_taken_ || !status_.ok(); });
    if (num_made_ == num_taken_) return status_;
    return &slots_[static_cast<size_t>(num_taken_++) % slots_.size()];
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (status_.ok()) {
      changed_.wait(lock, [this] {
        return must_end_ || num_made_ - num_freed_ < static_cast<int64_t>(slots_.size());
      });
      if (must_end_) return;
      const int64_t index = num_made_;
      lock.unlock();
      Item* const slot = &slots_[static_cast<size_t>(index) % slots_.size()];
      Status made = CatchExceptions("loading data", [&] { return make_(first_ + index, slot); });
      lock.lock();
      status_ = std::move(made);
      if (status_.ok()) ++num_made_;
      changed_.notify_all();
    }
  }

  std::vector<Item> slots_;
  const int64_t first_;
  const Make make_;
  std::mutex mutex_;  // protects all members below
  std::condition_variable changed_;
  int64_t num_made_ = 0;
  int64_t num_taken_ = 0;
  int64_t num_freed_ = 0;  // the caller no longer uses these
  bool must_end_ = false;
  Status status_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace zg
