#include "framework/job/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>

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
