#include "framework/job/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

namespace zg {
namespace {

// A child that runs `body` while `signal` arrives for it.
ChildEnd RunChild(int signal, const std::function<int()>& body, const ChildWatch& watch = {}) {
  const SignalQueue signals = SignalQueue::Create().value();
  const pid_t child = fork();
  if (child == 0) {
    signals.RestoreMask();
    _exit(body());
  }
  if (signal != 0) raise(signal);
  return WaitForChild(child, signals, watch);
}

int SleepLong() {
  sleep(60);
  return 0;
}

TEST(WaitForChild, TellsHowTheChildEnded) {
  const ChildEnd ended = RunChild(0, [] { return 7; });
  EXPECT_EQ(ended.code, 7);
  EXPECT_FALSE(ended.was_stopped);
  EXPECT_EQ(RunChild(0, [] { return raise(SIGKILL); }).code, 128 + SIGKILL);
}

// Whichever of two threads gets a signal that only one blocks, the other loses it.
TEST(WaitForChild, NeedsNoSignalToSeeTheEnd) {
  std::atomic<bool> is_over(false);
  std::vector<std::thread> takers;
  for (int i = 0; i < 4; ++i) {
    takers.emplace_back([&] {
      while (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(RunChild(0, [] { return 7; }).code, 7);
  is_over = true;
  for (std::thread& taker : takers) taker.join();
}

TEST(WaitForChild, PassesSignalsOn) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const ChildEnd ended = RunChild(signal, SleepLong);
    EXPECT_EQ(ended.code, 128 + signal);
    EXPECT_TRUE(ended.was_stopped);
  }
  const ChildEnd ended = RunChild(SIGUSR1, SleepLong);
  EXPECT_EQ(ended.code, 128 + SIGUSR1);
  EXPECT_FALSE(ended.was_stopped);  // the signal does not ask for an end
}

TEST(WaitForChild, TranslatesSignals) {
  ChildWatch watch;
  watch.translate = [](int) { return SIGUSR2; };
  const ChildEnd ended = RunChild(SIGTERM, SleepLong, watch);
  EXPECT_EQ(ended.code, 128 + SIGUSR2);
  EXPECT_TRUE(ended.was_stopped);
}

TEST(WaitForChild, EndsAChildOfWhichThereIsEnough) {
  ChildWatch watch;
  int num_asked = 0;
  watch.is_enough = [&] { return ++num_asked > 2; };
  const ChildEnd ended = RunChild(0, SleepLong, watch);
  EXPECT_EQ(ended.code, 128 + SIGTERM);
  EXPECT_FALSE(ended.was_stopped);
  watch.is_enough = [] { return false; };
  EXPECT_EQ(RunChild(
                0, [] { return 7; }, watch)
                .code,
            7);
}

TEST(SleepUnlessStopped, EndsEarlyOnlyWhenStopped) {
  const SignalQueue signals = SignalQueue::Create().value();
  EXPECT_TRUE(SleepUnlessStopped(0.02, signals));
  raise(SIGUSR1);
  EXPECT_TRUE(SleepUnlessStopped(0.02, signals));
  raise(SIGTERM);
  EXPECT_FALSE(SleepUnlessStopped(60, signals));
}

}  // namespace
}  // namespace zg
