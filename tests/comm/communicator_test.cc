#include "framework/comm/communicator.h"

#include <gtest/gtest.h>

#include "framework/comm/in_process.h"

namespace zg {
namespace {

TEST(TrafficMeterTest, CountsCallsAndBytesOfEachKind) {
  TrafficMeter meter;
  meter.BeginCall(CollectiveKind::kAllGather);
  meter.AddReceived(100);
  meter.AddReceived(20);
  meter.BeginCall(CollectiveKind::kAllReduce);
  meter.BeginCall(CollectiveKind::kAllGather);
  meter.AddReceived(3);
  const TrafficCounters& counters = meter.counters();
  EXPECT_EQ(counters[static_cast<int>(CollectiveKind::kAllGather)].count, 2);
  EXPECT_EQ(counters[static_cast<int>(CollectiveKind::kAllGather)].bytes, 123);
  EXPECT_EQ(counters[static_cast<int>(CollectiveKind::kAllReduce)].count, 1);
  EXPECT_EQ(counters[static_cast<int>(CollectiveKind::kAllReduce)].bytes, 0);
}

TEST(TrafficMeterTest, WhatWasRecordedIsCountedAtEachReplay) {
  TrafficMeter meter;
  const TrafficCounters before = meter.counters();
  meter.BeginCall(CollectiveKind::kAllToAll);
  meter.AddReceived(7);
  const TrafficCounters recorded = meter.TakeBack(before);
  EXPECT_EQ(meter.counters()[static_cast<int>(CollectiveKind::kAllToAll)].bytes, 0);
  meter.Add(recorded);
  meter.Add(recorded);
  EXPECT_EQ(meter.counters()[static_cast<int>(CollectiveKind::kAllToAll)].count, 2);
  EXPECT_EQ(meter.counters()[static_cast<int>(CollectiveKind::kAllToAll)].bytes, 14);
}

TEST(GroupOfTest, RefusesWhatIsNoGroup) {
  InProcessGroup job(1);
  Communicator& communicator = job.communicator(0);
  EXPECT_EQ(communicator.GroupOf({0}).value(), &communicator.world());
  EXPECT_EQ(communicator.GroupOf({0, 1}).status().message(),
            "rank 0 asks for the group of ranks 0, 1, expected distinct ranks of the 1 in the job "
            "and itself among them");
  EXPECT_FALSE(communicator.GroupOf({}).ok());
  EXPECT_FALSE(communicator.GroupOf({0, 0}).ok());
}

TEST(GroupOfTest, RanksMustAskForTheSameGroups) {
  const Status status = RunRanks(3, 10, [](Communicator& communicator) -> Status {
    if (communicator.rank() == 0) return communicator.GroupOf({0, 1}).status();
    if (communicator.rank() == 1) return communicator.GroupOf({1, 2}).status();
    return communicator.GroupOf({1, 2}).status();
  });
  EXPECT_TRUE(status.ok());  // an error of rank 0 in its own group appears at its deadline
  const Status leaderless = RunRanks(3, 10, [](Communicator& communicator) -> Status {
    if (communicator.rank() == 2) return communicator.GroupOf({2}).status();
    return communicator.GroupOf({2 - communicator.rank(), communicator.rank()}).status();
  });
  EXPECT_FALSE(leaderless.ok());
}

}  // namespace
}  // namespace zg
