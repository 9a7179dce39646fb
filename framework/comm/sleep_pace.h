// SleepPace: how long a thread that waits for messages sleeps between two looks at them, while another
// thread of the rank computes on the same processor. Every look costs that thread time, but messages
// that have long been there leave the link idle. So the pace follows the link: a wait that finds its
// messages there makes it faster, one that has to look often makes it slower.
#pragma once

#include <algorithm>

namespace zg {

class SleepPace {
 public:
  static constexpr double kMinSeconds = 50e-6;
  static constexpr double kMaxSeconds = 500e-6;  // a few chunks keep 1 Gbit/s busy for longer

  // The next sleep of a wait in which this thread has slept so many times.
  double SleepSeconds(int num_sleeps) {
    if (num_sleeps >= 2) seconds_ = std::min(kMaxSeconds, 2 * seconds_);
    return seconds_;
  }

  // The wait is over.
  void EndWait(int num_sleeps) {
    if (num_sleeps == 0) seconds_ = std::max(kMinSeconds, seconds_ / 2);
  }

 private:
  double seconds_ = 200e-6;
};

}  // namespace zg
