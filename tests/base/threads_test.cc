#include "framework/base/threads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/testing/allocation_counter.h"

namespace zg {
namespace {

TEST(Threads, EveryPartIsDoneOnce) {
  for (const int count : {1, 2, 3, 5}) {
    Threads threads(count);
    EXPECT_EQ(threads.count(), count);
    for (const int64_t parts : {0, 1, 2, 3, 4, 5, 17, 100}) {
      std::vector<std::atomic<int>> done(parts);
      std::vector<std::atomic<int>> by(parts);
      threads.Run(parts, [&](int64_t part, int thread) {
        done[part].fetch_add(1);
        by[part].store(thread);
      });
      for (int64_t part = 0; part < parts; ++part) {
        EXPECT_EQ(done[part].load(), 1) << "part " << part << " of " << parts;
        EXPECT_GE(by[part].load(), 0);
        EXPECT_LT(by[part].load(), count);
        if (part < count) {
          EXPECT_EQ(by[part].load(), part);  // its own
        }
      }
    }
  }
}

// Unsynchronised on purpose: the thread sanitizer checks it.
TEST(Threads, WritesOfARunAreSeenByTheNext) {
  Threads threads(3);
  constexpr int64_t kParts = 3;
  int64_t values[kParts] = {};
  for (int run = 0; run < 2000; ++run) {
    int64_t sum = 0;
    for (const int64_t value : values) sum += value;
    ASSERT_EQ(sum, kParts * run);
    threads.Run(kParts, [&](int64_t part, int) { values[(part + run) % kParts] += 1; });
  }
  EXPECT_EQ(threads.num_shared_runs(), 2000);
}

TEST(Threads, WorkersWakeFromSleep) {
  Threads threads(2);
  for (int run = 0; run < 20; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(run % 2 == 0 ? 3 : 0));
    std::atomic<int> done{0};
    threads.Run(2, [&](int64_t part, int) {
      // The caller sleeps, too, while it waits for a slow worker.
      if (part == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      done.fetch_add(1);
    });
    EXPECT_EQ(done.load(), 2);
  }
}

TEST(Threads, IdleOnesTakeNoTime) {
  Threads threads(4);
  threads.Run(4, [](int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::clock_t begin = std::clock();  // CPU time of the whole process
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double used_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(used_s, 0.1);
}

TEST(Threads, ARunAllocatesNothing) {
  Threads threads(2);
  std::vector<double> large(100);
  int64_t sums[2] = {};
  const testing::AllocationCounter counter;
  for (int run = 0; run < 10; ++run) {
    threads.Run(2, [&large, &sums, run](int64_t part, int) {
      sums[part] += run + static_cast<int64_t>(large.size());
    });
  }
  EXPECT_EQ(counter.count(), 0);
  EXPECT_EQ(sums[0], 45 + 1000);
}

TEST(Threads, WorkersTakeNoSignals) {
  static std::atomic<bool> is_elsewhere{false};
  static std::atomic<int> num_signals{0};
  static const std::thread::id caller = std::this_thread::get_id();
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) {
    num_signals.fetch_add(1);
    if (std::this_thread::get_id() != caller) is_elsewhere = true;
  };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  {
    Threads threads(4);
    for (int i = 0; i < 100; ++i) {
      kill(getpid(), SIGUSR1);
      threads.Run(4, [](int64_t, int) {});
    }
  }
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_GT(num_signals.load(), 0);
  EXPECT_FALSE(is_elsewhere.load());
}

}  // namespace
}  // namespace zg
