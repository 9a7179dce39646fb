// The pause between two polls of a GPU's queue. A short wait ends without a sleep, which would take
// longer than the wait; a long one leaves the processor to others.
#pragma once

#include <chrono>
#include <thread>

namespace zg {

class PollPause {
 public:
  void operator()() const {
    if (Clock::now() - begin_ < kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPollEvery);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kSpin{200};
  static constexpr std::chrono::microseconds kPollEvery{20};
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace zg
