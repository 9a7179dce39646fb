#include "framework/comm/message_rounds.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace zg {
namespace {

struct Outcome {
  std::vector<std::vector<int>> received;  // by rank: the parts, in the order in which they came
  int between_hosts = 0;                   // messages
};

// Delivers the messages of all ranks, round by round.
Outcome Deliver(const std::vector<int>& hosts) {
  const int num_ranks = static_cast<int>(hosts.size());
  Outcome outcome;
  outcome.received.resize(num_ranks);
  std::vector<std::vector<MessageRound>> rounds;
  std::vector<std::set<int>> has(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    rounds.push_back(GatherRounds(hosts, rank));
    has[rank].insert(rank);
    EXPECT_EQ(rounds[rank].size(), rounds[0].size());
  }
  for (size_t round = 0; round < rounds[0].size(); ++round) {
    std::map<std::pair<int, int>, std::vector<int>> under_way;  // by sender and receiver, in order
    for (int rank = 0; rank < num_ranks; ++rank) {
      for (const PartMessage& sent : rounds[rank][round].sent) {
        EXPECT_EQ(has[rank].count(sent.part), 1u)
            << "rank " << rank << " has no part " << sent.part;
        under_way[{rank, sent.peer}].push_back(sent.part);
        outcome.between_hosts += hosts[rank] == hosts[sent.peer] ? 0 : 1;
      }
    }
    std::map<std::pair<int, int>, std::vector<int>> awaited;
    for (int rank = 0; rank < num_ranks; ++rank) {
      for (const PartMessage& received : rounds[rank][round].received) {
        awaited[{received.peer, rank}].push_back(received.part);
        outcome.received[rank].push_back(received.part);
        has[rank].insert(received.part);
      }
    }
    EXPECT_EQ(under_way, awaited);
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    EXPECT_EQ(static_cast<int>(has[rank].size()), num_ranks);
    EXPECT_EQ(static_cast<int>(outcome.received[rank].size()), num_ranks - 1);  // each part once
  }
  return outcome;
}

TEST(GatherRounds, DirectOnOneHost) {
  for (int num_ranks = 1; num_ranks <= 5; ++num_ranks) {
    EXPECT_EQ(GatherRounds(std::vector<int>(num_ranks, 7), 0).size(), 1u);
    EXPECT_EQ(Deliver(std::vector<int>(num_ranks, 7)).between_hosts, 0);
  }
}

TEST(GatherRounds, DirectWithOneRankOnEachHost) {
  EXPECT_EQ(GatherRounds({2, 0, 1}, 0).size(), 1u);
  EXPECT_EQ(Deliver({2, 0, 1}).between_hosts, 6);
}

// A part crosses to each other host once.
TEST(GatherRounds, PartsArePassedOnInsideAHost) {
  EXPECT_EQ(Deliver({0, 0, 1, 1}).between_hosts, 4);
  EXPECT_EQ(Deliver({0, 1, 0, 1}).between_hosts, 4);  // in any order of ranks
  EXPECT_EQ(Deliver({0, 0, 0, 0, 9, 9, 9, 9}).between_hosts, 8);
  EXPECT_EQ(Deliver({0, 0, 1, 1, 2, 2}).between_hosts, 12);
}

TEST(GatherRounds, DirectWithOtherNumbersOnEachHost) {
  EXPECT_EQ(Deliver({0, 0, 1}).between_hosts, 4);
  EXPECT_EQ(Deliver({0, 0, 0, 1, 1}).between_hosts, 12);
}

TEST(AllToAllRound, EveryPartReachesItsRankInOneRound) {
  for (int num_ranks = 1; num_ranks <= 5; ++num_ranks) {
    std::set<std::pair<int, int>> sent;  // by sender and receiver
    std::set<std::pair<int, int>> received;
    for (int rank = 0; rank < num_ranks; ++rank) {
      for (const PartMessage& message : AllToAllRound(num_ranks, rank).sent) {
        EXPECT_EQ(message.part, message.peer);
        EXPECT_TRUE(sent.insert({rank, message.peer}).second);
      }
      for (const PartMessage& message : AllToAllRound(num_ranks, rank).received) {
        EXPECT_EQ(message.part, message.peer);
        EXPECT_TRUE(received.insert({message.peer, rank}).second);
      }
    }
    EXPECT_EQ(static_cast<int>(sent.size()), num_ranks * (num_ranks - 1));
    EXPECT_EQ(sent, received);
  }
}

}  // namespace
}  // namespace zg
