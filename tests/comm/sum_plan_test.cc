#include "framework/comm/sum_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/comm/sum_route.h"

namespace zg {
namespace {

const SumBytes kF32 = SumBytesOf(DType::kF32, false);
const SumBytes kContinuedF32 = SumBytesOf(DType::kF32, true);
const SumBytes kBF16 = SumBytesOf(DType::kBF16, false);

std::vector<int> InJobOrder(const std::vector<int>& hosts) {
  std::vector<int> order(hosts.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The hosts of `num_hosts` times `per_host` ranks.
std::vector<int> Hosts(int num_hosts, int per_host) {
  std::vector<int> hosts;
  for (int rank = 0; rank < num_hosts * per_host; ++rank) hosts.push_back(rank / per_host);
  return hosts;
}

// Runs the plans of all ranks on sums that are written down instead of added up. Messages from one
// rank to another arrive in the order in which they were sent, apart for each kind.
class WrittenSums {
 public:
  WrittenSums(std::vector<int> hosts, std::vector<int> order, SumBytes bytes)
      : hosts_(std::move(hosts)), order_(std::move(order)), bytes_(bytes) {
    const int num_ranks = static_cast<int>(hosts_.size());
    for (int rank = 0; rank < num_ranks; ++rank) {
      plans_.push_back(PlanSum(hosts_, order_, rank, bytes_));
      done_.emplace_back(plans_[rank].tasks.size());
    }
    received_.resize(num_ranks);
    sums_.resize(num_ranks);
    for (int rank = 0; rank < num_ranks; ++rank) {
      const SumPlan& plan = plans_[rank];
      if (plan.started_on >= 0) Send("start", rank, plan.started_on, Start(rank), bytes_.sum);
      for (const SentTerm& sent : plan.terms) {
        Send("term", rank, sent.to, Term(rank, sent.part), bytes_.term);
      }
    }
    // A rank adds up when the sum that it continues has arrived, so ranks take turns.
    for (int turn = 0; turn < num_ranks; ++turn) {
      for (int rank = 0; rank < num_ranks; ++rank) AddUp(rank);
    }
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (plans_[rank].returned_from >= 0) {
        sums_[rank] = Receive("return", plans_[rank].returned_from, rank, bytes_.sum);
      }
    }
  }

  // Each part has the terms of all ranks, in order, after the sum that is continued.
  void ExpectLeftFolds() const {
    for (int part = 0; part < static_cast<int>(hosts_.size()); ++part) {
      std::string expected = bytes_.continues ? Start(part) : "";
      for (const int rank : order_) expected += Term(rank, part);
      EXPECT_EQ(sums_[part], expected) << "part " << part;
    }
    for (const auto& [key, texts] : under_way_) EXPECT_TRUE(texts.empty()) << std::get<0>(key);
    const int num_ranks = static_cast<int>(hosts_.size());
    for (int rank = 0; rank < num_ranks; ++rank) {
      EXPECT_EQ(plans_[rank].ReceivedBytes(rank, {num_ranks, 1}, bytes_), received_[rank])
          << "rank " << rank;
    }
  }

  // Bytes per element of a part, sent by all ranks of a host to other hosts.
  std::map<int, int64_t> sent_by_host() const { return sent_by_host_; }

  // The most that a host sends to others or receives from them.
  int64_t MostBytes() const {
    int64_t most = 0;
    for (const auto& [host, bytes] : sent_by_host_) most = std::max(most, bytes);
    for (const auto& [host, bytes] : received_by_host_) most = std::max(most, bytes);
    return most;
  }

 private:
  static std::string Start(int part) { return "start" + std::to_string(part) + " "; }
  static std::string Term(int rank, int part) {
    return std::to_string(rank) + "." + std::to_string(part) + " ";
  }

  void Send(const char* kind, int from, int to, std::string text, int64_t bytes) {
    under_way_[{kind, from, to}].push_back(std::move(text));
    if (hosts_[from] == hosts_[to]) return;
    sent_by_host_[hosts_[from]] += bytes;
    received_by_host_[hosts_[to]] += bytes;
  }
  bool HasArrived(const char* kind, int from, int to) {
    return !under_way_[{kind, from, to}].empty();
  }
  std::string Receive(const char* kind, int from, int to, int64_t bytes) {
    std::vector<std::string>& texts = under_way_[{kind, from, to}];
    if (texts.empty()) return "nothing ";
    std::string text = texts.front();
    texts.erase(texts.begin());
    received_[to] += bytes;
    return text;
  }

  void AddUp(int rank) {
    const SumPlan& plan = plans_[rank];
    for (size_t i = 0; i < plan.tasks.size(); ++i) {
      const SumTask& task = plan.tasks[i];
      if (done_[rank][i]) continue;
      std::string sum;
      if (task.from >= 0) {
        const char* const kind = task.is_first ? "start" : "sum";
        if (!HasArrived(kind, task.from, rank)) return;
        sum = Receive(kind, task.from, rank, task.is_first ? bytes_.sum : bytes_.running);
      } else if (bytes_.continues) {
        sum = Start(rank);
      }
      for (const int term : task.terms) {
        sum += term == rank ? Term(rank, task.part) : Receive("term", term, rank, bytes_.term);
      }
      if (task.to < 0) {
        sums_[rank] = sum;
      } else {
        Send(task.is_last ? "return" : "sum", rank, task.to, sum,
             task.is_last ? bytes_.sum : bytes_.running);
      }
      done_[rank][i] = true;
    }
  }

  std::vector<int> hosts_, order_;
  SumBytes bytes_;
  std::vector<SumPlan> plans_;
  std::vector<std::vector<bool>> done_;
  std::map<std::tuple<std::string, int, int>, std::vector<std::string>> under_way_;
  std::vector<int64_t> received_;
  std::vector<std::string> sums_;  // by rank: of its part
  std::map<int, int64_t> sent_by_host_, received_by_host_;
};

TEST(SumPlan, EveryPartIsTheLeftFoldOnAnyHosts) {
  for (const std::vector<int>& hosts : std::vector<std::vector<int>>{
           {0},
           {0, 0, 0},
           {4, 2, 3},
           {0, 0, 1},
           {0, 0, 1, 1},
           {0, 1, 1, 1, 1},
           {0, 0, 0, 0, 1},
           {0, 1, 0, 1},  // not one after the other
           {0, 0, 0, 1, 1, 1, 1, 1, 2},
           Hosts(2, 4),
           Hosts(3, 3),
           Hosts(4, 2),
           Hosts(4, 8),
       }) {
    for (const SumBytes& bytes : {kF32, kContinuedF32, kBF16, SumBytesOf(DType::kI64, true),
                                  SumBytesOf({DType::kBF16, DType::kF32}, true)}) {
      std::vector<int> order = InJobOrder(hosts);
      WrittenSums(hosts, order, bytes).ExpectLeftFolds();
      // A group may list its ranks in another order than that of the additions.
      std::vector<int> reversed(hosts.rbegin(), hosts.rend());
      std::reverse(order.begin(), order.end());
      WrittenSums(reversed, order, bytes).ExpectLeftFolds();
    }
  }
}

// On two hosts of four a sum of eight terms goes to the other host, and those of its parts come back.
// Directly, four terms would go to each of the four ranks there.
TEST(SumPlan, ASumGoesBetweenHostsOnce) {
  const std::vector<int> hosts = Hosts(2, 4);
  const WrittenSums sums(hosts, InJobOrder(hosts), kF32);
  EXPECT_EQ(sums.sent_by_host(), (std::map<int, int64_t>{{0, 8 * 4}, {1, 4 * 4}}));
  // Running sums of halves are in f32, complete ones in 16 bits.
  const std::vector<int> of_eight = Hosts(2, 8);
  const WrittenSums halves(of_eight, InJobOrder(of_eight), kBF16);
  EXPECT_EQ(halves.sent_by_host(), (std::map<int, int64_t>{{0, 16 * 4}, {1, 8 * 2}}));
}

TEST(SumPlan, ASumThatIsContinuedStartsAtItsOwner) {
  const std::vector<int> hosts = Hosts(2, 4);
  const WrittenSums sums(hosts, InJobOrder(hosts), kContinuedF32);
  EXPECT_EQ(sums.sent_by_host(), (std::map<int, int64_t>{{0, 8 * 4}, {1, 4 * 4 + 4 * 4}}));
}

TEST(SumPlan, DirectWhereThatSendsNoMore) {
  const auto is_direct = [](const std::vector<int>& hosts, int owner, const SumBytes& bytes) {
    return SumRoute(hosts, owner, bytes).size() == 1;
  };
  EXPECT_TRUE(is_direct({0, 0, 0, 0}, 1, kF32));
  EXPECT_TRUE(is_direct({0, 1, 2, 3}, 1, kF32));
  EXPECT_TRUE(is_direct({0, 1, 0, 1, 0, 1}, 1, kF32));
  EXPECT_TRUE(is_direct({0, 0, 1, 1}, 0, kF32));  // there and back are two sums, as many as terms
  EXPECT_FALSE(is_direct({0, 0, 1, 1}, 3, kF32));
  EXPECT_TRUE(is_direct({0, 0, 1, 1}, 3, kContinuedF32));
  EXPECT_TRUE(is_direct({0, 0, 1, 1}, 3, kBF16));  // a sum in f32 is as large as two terms
  EXPECT_FALSE(is_direct({0, 0, 1, 1, 2, 2}, 0, kF32));
}

// The second host's terms go to the owners on the first one either way.
TEST(SumPlan, DirectWhereTheBusiestHostSendsNoLess) {
  EXPECT_FALSE(LessensBytesBetweenHosts({0, 0, 1, 1}, kF32));
  EXPECT_TRUE(LessensBytesBetweenHosts({0, 0, 0, 1, 1, 1}, kF32));
  EXPECT_TRUE(LessensBytesBetweenHosts(Hosts(3, 3), kF32));
  EXPECT_FALSE(LessensBytesBetweenHosts(Hosts(2, 4), kBF16));
  EXPECT_TRUE(LessensBytesBetweenHosts(Hosts(2, 8), kBF16));
  EXPECT_EQ(PlanSum({0, 0, 1, 1}, {0, 1, 2, 3}, 3, kF32).tasks.size(), 1u);
}

TEST(SumPlan, MostBytesBetweenHostsAreThoseOfTheMessages) {
  for (const std::vector<int>& hosts : {Hosts(1, 4), Hosts(2, 2), Hosts(2, 4), Hosts(3, 4),
                                        Hosts(4, 8), std::vector<int>{0, 0, 0, 1, 1, 1, 1, 1, 2}}) {
    for (const SumBytes& bytes : {kF32, kContinuedF32, kBF16}) {
      EXPECT_EQ(MostBytesBetweenHosts(hosts, bytes),
                WrittenSums(hosts, InJobOrder(hosts), bytes).MostBytes());
    }
  }
}

TEST(SumPlan, WorkIsEvenOnTheRanksOfAHost) {
  const std::vector<int> hosts = Hosts(4, 8);
  for (int rank = 0; rank < 32; ++rank) {
    EXPECT_EQ(PlanSum(hosts, InJobOrder(hosts), rank, kF32).tasks.size(), 4u);
  }
}

TEST(SumPlan, SmallPartsGoDirectly) {
  EXPECT_FALSE(MayGoAlongHosts(DType::kF32, 4095));
  EXPECT_TRUE(MayGoAlongHosts(DType::kF32, 4096));
  EXPECT_TRUE(MayGoAlongHosts(DType::kBF16, 8192));
  EXPECT_FALSE(MayGoAlongHosts({DType::kF32, DType::kF32, FoldOrder::kPairwise}, 1 << 20));
}

}  // namespace
}  // namespace zg
