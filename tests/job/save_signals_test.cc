// Signals that ask for a checkpoint: their effect on a process, and how ranks agree on a step.

#include "framework/job/save_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/job/signal_agreement.h"

namespace zg {
namespace {

void Ignore(int) {}

// The current handler of a signal.
void (*HandlerOf(int signal))(int) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

TEST(SaveSignals, CountsAndRestores) {
  std::signal(SIGUSR1, Ignore);
  {
    const SaveSignals signals(/*saves=*/true);
    EXPECT_EQ(signals.num_save_requests(), 0);
    std::raise(SIGUSR1);
    std::raise(SIGUSR1);
    EXPECT_EQ(signals.num_save_requests(), 2);
    EXPECT_FALSE(signals.is_end_requested());
    std::raise(SIGTERM);
    EXPECT_TRUE(signals.is_end_requested());
  }
  EXPECT_EQ(HandlerOf(SIGUSR1), Ignore);
  EXPECT_EQ(HandlerOf(SIGUSR2), SIG_DFL);
  EXPECT_EQ(HandlerOf(SIGTERM), SIG_DFL);
  const SaveSignals again(/*saves=*/true);
  EXPECT_EQ(again.num_save_requests(), 0);
  EXPECT_FALSE(again.is_end_requested());
  std::raise(SIGUSR2);
  EXPECT_TRUE(again.is_end_requested());
}

TEST(SaveSignals, WithoutAPlaceToSaveTermEndsAsUsual) {
  const SaveSignals signals(/*saves=*/false);
  EXPECT_EQ(HandlerOf(SIGTERM), SIG_DFL);
  EXPECT_EQ(HandlerOf(SIGUSR2), SIG_DFL);
  std::raise(SIGUSR1);
  EXPECT_EQ(signals.num_save_requests(), 1);
}

TEST(SaveSignals, ARequestBeforeTrainingWaitsForIt) {
  const SaveSignals of_the_job(/*saves=*/false);
  std::raise(SIGUSR1);
  {
    const SaveSignals of_training(/*saves=*/true);
    EXPECT_EQ(of_training.num_save_requests(), 1);
    std::raise(SIGTERM);
    EXPECT_TRUE(of_training.is_end_requested());
  }
  EXPECT_EQ(HandlerOf(SIGTERM), SIG_DFL);
  EXPECT_EQ(HandlerOf(SIGUSR2), SIG_DFL);
  std::raise(SIGUSR1);
  EXPECT_EQ(of_the_job.num_save_requests(), 2);
  const SaveSignals of_another_training(/*saves=*/true);
  EXPECT_EQ(of_another_training.num_save_requests(), 1);
  EXPECT_FALSE(of_another_training.is_end_requested());
}

TEST(SaveSignalsDeathTest, ASecondTermEndsAtOnce) {
  EXPECT_EXIT(
      {
        const SaveSignals signals(/*saves=*/true);
        std::raise(SIGTERM);
        if (!signals.is_end_requested()) std::exit(1);
        std::raise(SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(SaveSignals, VirtualRanksShareThem) {
  std::signal(SIGUSR1, Ignore);
  {
    const SaveSignals first(true);
    {
      const SaveSignals second(true);
      std::raise(SIGUSR1);
      EXPECT_EQ(second.num_save_requests(), 1);
    }
    std::raise(SIGUSR1);
    EXPECT_EQ(first.num_save_requests(), 2);
  }
  EXPECT_EQ(HandlerOf(SIGUSR1), Ignore);
}

// The decisions of all ranks after `steps` steps of `step_ms`. `before_step` is called on every
// rank; the signals that it raises have reached all ranks, which share one process, when the step
// ends.
std::vector<std::vector<SignalDecision>> Decisions(
    int num_ranks, int steps, double step_ms,
    const std::function<void(int rank, int step)>& before_step) {
  const SaveSignals first(true);
  std::vector<std::vector<SignalDecision>> decisions(num_ranks);
  const Status status = RunRanks(num_ranks, [&](Communicator& communicator) -> Status {
    const SaveSignals signals(true);
    SignalAgreement agreement(communicator, signals);
    ZG_RETURN_IF_ERROR(communicator.Barrier("made"));
    for (int step = 1; step <= steps; ++step) {
      before_step(communicator.rank(), step);
      ZG_RETURN_IF_ERROR(communicator.Barrier("raised"));
      ZG_ASSIGN_OR_RETURN(const SignalDecision decision, agreement.AfterStep(step_ms));
      decisions[communicator.rank()].push_back(decision);
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return decisions;
}

TEST(SignalAgreement, AllRanksSaveOnceAtTheSameStep) {
  for (const int ranks : {1, 2, 3}) {
    const auto decisions = Decisions(ranks, 9, /*step_ms=*/100, [&](int rank, int step) {
      if (rank == ranks - 1 && step == 3) std::raise(SIGUSR1);
      if (rank == 0 && step == 7) std::raise(SIGUSR1);
    });
    for (const auto& of_rank : decisions) {
      std::vector<int> saved_at;
      for (size_t i = 0; i < of_rank.size(); ++i) {
        EXPECT_TRUE(of_rank[i].were_together);
        EXPECT_FALSE(of_rank[i].end);
        if (of_rank[i].save) saved_at.push_back(static_cast<int>(i) + 1);
      }
      EXPECT_EQ(saved_at, (std::vector<int>{4, 8})) << ranks << " ranks";
    }
  }
}

TEST(SignalAgreement, SeveralSignalsAtOnceAreOne) {
  const auto decisions = Decisions(2, 8, /*step_ms=*/100, [&](int rank, int step) {
    if (step == 2 || (rank == 1 && step == 3)) std::raise(SIGUSR1);
  });
  int num_saves = 0;
  for (const SignalDecision& decision : decisions[1]) num_saves += decision.save ? 1 : 0;
  EXPECT_EQ(num_saves, 1);
}

TEST(SignalAgreement, AllRanksEndAtTheSameStep) {
  const auto decisions = Decisions(3, 6, /*step_ms=*/100, [&](int rank, int step) {
    if (rank == 1 && step == 3) std::raise(SIGTERM);
  });
  for (const auto& of_rank : decisions) {
    for (size_t i = 0; i < of_rank.size(); ++i) EXPECT_EQ(of_rank[i].end, decisions[0][i].end);
    EXPECT_FALSE(of_rank[1].end);
    EXPECT_TRUE(of_rank[3].end);
  }
}

TEST(SignalAgreement, RanksWithShortStepsMeetSeldom) {
  const auto decisions = Decisions(2, 100, /*step_ms=*/2, [](int, int) {});  // 25 steps are 50 ms
  for (const auto& of_rank : decisions) {
    for (int step = 1; step <= 100; ++step) {
      EXPECT_EQ(of_rank[step - 1].were_together, step % 25 == 1) << step;
    }
  }
}

}  // namespace
}  // namespace zg
