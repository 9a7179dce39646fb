// When transfers start and are waited for.
#include "framework/passes/transfer_times.h"

#include <gtest/gtest.h>

#include <random>

namespace zg {
namespace {

constexpr int kEnd = 100;

TransferTimes InPlace(int place, int needed, int64_t bytes) {
  return {place, place, needed, bytes};
}
TransferTimes Ahead(int place, int64_t bytes, int earliest = 0) {
  return {place, earliest, place + 1, bytes};
}

std::vector<TransferTimes> Plan(int64_t max_bytes, std::vector<TransferTimes> times) {
  std::vector<TransferTimes*> pointers;
  for (TransferTimes& transfer : times) pointers.push_back(&transfer);
  PlanTransferTimes(max_bytes, kEnd, pointers);
  return times;
}

TEST(TransferTimes, WhatIsNeededLateIsWaitedForLate) {
  const auto times = Plan(1000, {InPlace(10, 50, 400), InPlace(20, kEnd, 400)});
  EXPECT_EQ(times[0].start, 10);
  EXPECT_EQ(times[0].wait, 50);
  EXPECT_EQ(times[1].start, 20);
  EXPECT_EQ(times[1].wait, kEnd);
}

TEST(TransferTimes, TheOldestMakesRoom) {
  const auto times =
      Plan(1000, {InPlace(10, kEnd, 600), InPlace(20, kEnd, 0), InPlace(30, kEnd, 600)});
  EXPECT_EQ(times[0].wait, 30);
  EXPECT_EQ(times[1].wait, kEnd);  // that one takes no room
  EXPECT_EQ(times[2].start, 30);
  EXPECT_EQ(times[2].wait, kEnd);
}

TEST(TransferTimes, WhatIsLargerThanTheLimitStaysInItsPlace) {
  const auto times = Plan(1000, {InPlace(10, kEnd, 1001), Ahead(20, 1001), Ahead(30, 500)});
  EXPECT_EQ(times[0].wait, times[0].start);
  EXPECT_EQ(times[1].start, 20);
  EXPECT_EQ(times[1].wait, 20);
  EXPECT_EQ(times[2].start, 0);  // and prevents no other from starting
}

TEST(TransferTimes, NobodyOvertakesWhatIsNeededSooner) {
  const auto times = Plan(1000, {Ahead(10, 300), Ahead(20, 800), Ahead(30, 300)});
  EXPECT_EQ(times[0].start, 0);
  EXPECT_EQ(times[1].start, 11);  // when the first is available
  EXPECT_EQ(times[2].start, 21);
}

TEST(TransferTimes, BothKindsHaveHalf) {
  const auto times =
      Plan(1000, {InPlace(10, kEnd, 400), InPlace(20, kEnd, 400), Ahead(30, 400), Ahead(40, 400)});
  EXPECT_EQ(times[0].wait, 20);
  EXPECT_EQ(times[2].start, 0);
  EXPECT_EQ(times[3].start, 31);
}

TEST(TransferTimes, StartsWhereItsInputIsThere) {
  EXPECT_EQ(Plan(1000, {Ahead(30, 400, 17)})[0].start, 17);
}

// For random transfers: at no position are more bytes alive than allowed, and every transfer
// arrives in time.
TEST(TransferTimes, KeepTheLimit) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<TransferTimes> times;
    for (int place = 1 + static_cast<int>(random() % 5); place < kEnd;
         place += 1 + static_cast<int>(random() % 9)) {
      const auto bytes = static_cast<int64_t>(random() % 700);
      const int needed = place + 1 + static_cast<int>(random() % 30);
      times.push_back({place, random() % 2 == 0 ? place : static_cast<int>(random() % place),
                       std::min(needed, kEnd), bytes});
    }
    times = Plan(1000, times);
    for (int position = 0; position < kEnd; ++position) {
      int64_t alive = 0;
      for (const TransferTimes& transfer : times) {
        if (transfer.start <= position && position < transfer.wait) alive += transfer.bytes;
      }
      EXPECT_LE(alive, 1000);
    }
    for (const TransferTimes& transfer : times) {
      EXPECT_GE(transfer.start, transfer.earliest);
      EXPECT_LE(transfer.start, transfer.place);
      EXPECT_LE(transfer.wait, transfer.needed);
      EXPECT_GE(transfer.wait, transfer.start);
    }
  }
}

}  // namespace
}  // namespace zg
