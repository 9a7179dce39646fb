#include "framework/comm/sum_plan.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace zg {
namespace {

// The tasks of a part, on whichever ranks, with those ranks.
std::vector<std::pair<int, SumTask>> TasksOf(int part, const std::vector<int>& fold_order,
                                             const std::vector<SumStop>& stops,
                                             const SumBytes& bytes) {
  std::vector<std::pair<int, SumTask>> tasks;
  for (size_t i = 0; i < stops.size(); ++i) {
    const int rank = fold_order[stops[i].rank];
    SumTask task;
    task.part = part;
    task.is_first = i == 0;
    task.is_last = i + 1 == stops.size();
    for (int position = stops[i].first_term; position < stops[i].end_term; ++position) {
      task.terms.push_back(fold_order[position]);
    }
    if (!task.is_first) task.from = fold_order[stops[i - 1].rank];
    if (task.is_first && bytes.continues && rank != part) task.from = part;
    if (!task.is_last) task.to = fold_order[stops[i + 1].rank];
    if (task.is_last && rank != part) task.to = part;
    tasks.emplace_back(rank, std::move(task));
  }
  return tasks;
}

// The terms of the other ranks.
int64_t BytesOfTerms(int rank, const SumTask& task, const SumBytes& bytes) {
  const auto own = std::count(task.terms.begin(), task.terms.end(), rank);
  return (static_cast<int64_t>(task.terms.size()) - own) * bytes.term;
}

// Calls `visit` with each part's tasks.
template <typename Visit>
void ForEachPart(const std::vector<int>& hosts, const std::vector<int>& fold_order,
                 const SumBytes& bytes, const Visit& visit) {
  std::vector<int> hosts_in_order;
  for (const int rank : fold_order) hosts_in_order.push_back(hosts[rank]);
  if (!LessensBytesBetweenHosts(hosts_in_order, bytes)) hosts_in_order.assign(hosts.size(), 0);
  std::vector<int> position(hosts.size());
  for (size_t i = 0; i < fold_order.size(); ++i) position[fold_order[i]] = static_cast<int>(i);
  for (int part = 0; part < static_cast<int>(hosts.size()); ++part) {
    visit(TasksOf(part, fold_order, SumRoute(hosts_in_order, position[part], bytes), bytes));
  }
}

}  // namespace

SumPlan PlanSum(const std::vector<int>& hosts, const std::vector<int>& fold_order, int rank,
                const SumBytes& bytes) {
  SumPlan plan;
  std::vector<int64_t> buffer_bytes(hosts.size());
  ForEachPart(hosts, fold_order, bytes, [&](const auto& tasks) {
    for (const auto& [on, task] : tasks) {
      buffer_bytes[on] +=
          task.BytesFrom(bytes) + BytesOfTerms(on, task, bytes) + task.BytesTo(bytes);
      if (on == rank) {
        plan.tasks.push_back(task);
      } else if (std::count(task.terms.begin(), task.terms.end(), rank) > 0) {
        plan.terms.push_back({task.part, on});
      }
      if (task.part != rank || on == rank) continue;
      if (task.from == rank && task.is_first) plan.started_on = on;
      if (task.is_last) plan.returned_from = on;
    }
  });
  plan.buffer_bytes = *std::max_element(buffer_bytes.begin(), buffer_bytes.end());
  // Every rank begins with another receiver.
  const int num_ranks = static_cast<int>(hosts.size());
  const auto turn = [&](const SentTerm& sent) {
    return std::tuple((sent.to - rank + num_ranks) % num_ranks, sent.part);
  };
  std::sort(plan.terms.begin(), plan.terms.end(),
            [&](const SentTerm& a, const SentTerm& b) { return turn(a) < turn(b); });
  return plan;
}

int64_t SumPlan::ReceivedBytes(int rank, const Parts& parts, const SumBytes& bytes) const {
  int64_t received = returned_from < 0 ? 0 : parts.count(rank) * bytes.sum;
  for (const SumTask& task : tasks) {
    received += parts.count(task.part) * (task.BytesFrom(bytes) + BytesOfTerms(rank, task, bytes));
  }
  return received;
}

}  // namespace zg
