#include "framework/plan/two_queues.h"

#include <algorithm>
#include <vector>

#include "framework/passes/overlap_communication.h"

namespace zg::plan {
namespace {

constexpr double kRounding = 1e-9;

// How often a node of each section of training runs, in their order.
struct SectionRuns {
  const ir::Section* section;
  int64_t runs;
};
std::vector<SectionRuns> RunsOf(const ir::Graph& graph) {
  return {{graph.section(ir::SectionKind::kForward), MicroSteps(graph)},
          {graph.section(ir::SectionKind::kBackward), MicroSteps(graph)},
          {graph.section(ir::SectionKind::kUpdate), 1}};
}

// When each queue has done what was put into it so far.
class TwoQueues {
 public:
  TwoQueues(const ir::Graph& graph, const Machine& machine) {
    for (const SectionRuns& of : RunsOf(graph)) {
      for (const ir::Node* node : of.section->nodes) {
        nodes_[node] = {ComputeMs(graph, *node, machine), TransferMs(graph, *node, machine)};
      }
    }
  }

  void Step(const ir::Graph& graph) {
    for (int64_t j = 0; j < MicroSteps(graph); ++j) {
      Run(*graph.section(ir::SectionKind::kForward));
      Run(*graph.section(ir::SectionKind::kBackward));
    }
    Run(*graph.section(ir::SectionKind::kUpdate));
  }

  // Forgets how long transfers were waited for, not the queues.
  void ForgetWaits() { waited_ms_.clear(); }
  double waited_ms(const ir::Node* node) const {
    const auto found = waited_ms_.find(node);
    return found == waited_ms_.end() ? 0 : found->second;
  }

 private:
  struct NodeTimes {
    double compute_ms = 0;
    double transfer_ms = 0;
    double done_ms = 0;  // the last of its transfers
  };
  struct Transfer {
    const ir::Node* node;
    double begin_ms;
    double end_ms;
  };

  void Run(const ir::Section& section) {
    for (const ir::Node* node : section.nodes) {
      if (node->op->traits.kind == ir::OpKind::kWait) {
        for (const ir::Node* start : ir::StartsOf(*node)) WaitUntil(nodes_[start].done_ms);
        continue;
      }
      NodeTimes& times = nodes_.at(node);
      now_ms_ += times.compute_ms;
      if (!ir::MovesData(*node)) continue;
      const double begin_ms =
          transfers_.empty() ? now_ms_ : std::max(now_ms_, transfers_.back().end_ms);
      times.done_ms = begin_ms + times.transfer_ms;
      transfers_.push_back({node, begin_ms, times.done_ms});
      if (!ir::IsStart(*node)) WaitUntil(times.done_ms);
    }
  }

  // What is on its way meanwhile is waited for, whichever the computation needs.
  void WaitUntil(double ms) {
    if (ms <= now_ms_) return;
    for (auto transfer = transfers_.rbegin();
         transfer != transfers_.rend() && transfer->end_ms > now_ms_; ++transfer) {
      const double from_ms = std::max(transfer->begin_ms, now_ms_);
      const double to_ms = std::min(transfer->end_ms, ms);
      if (to_ms > from_ms) waited_ms_[transfer->node] += to_ms - from_ms;
    }
    now_ms_ = ms;
  }

  std::unordered_map<const ir::Node*, NodeTimes> nodes_;
  std::unordered_map<const ir::Node*, double> waited_ms_;
  std::vector<Transfer> transfers_;  // in their order
  double now_ms_ = 0;                // of the computation
};

}  // namespace

std::unordered_map<const ir::Node*, TransferTime> LayOnTwoQueues(const ir::Graph& graph,
                                                                 const Machine& machine) {
  std::unordered_map<const ir::Node*, TransferTime> times;
  for (const SectionRuns& of : RunsOf(graph)) {
    for (const ir::Node* node : of.section->nodes) {
      if (!ir::MovesData(*node)) continue;
      const double ms = TransferMs(graph, *node, machine) * static_cast<double>(of.runs);
      times[node] = {ms, ms};
    }
  }
  if (!Overlaps(graph)) return times;
  TwoQueues queues(graph, machine);
  queues.Step(graph);
  queues.ForgetWaits();
  queues.Step(graph);
  for (auto& [node, time] : times) {
    const double waited_ms = queues.waited_ms(node);
    time.waited_ms = time.ms - waited_ms > kRounding * time.ms ? waited_ms : time.ms;
  }
  return times;
}

}  // namespace zg::plan
