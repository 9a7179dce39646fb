#include "framework/plan/two_queues.h"

#include <algorithm>

#include "framework/passes/overlap_communication.h"
#include "framework/passes/predict_traffic.h"

namespace zg::plan {
namespace {

constexpr double kRounding = 1e-9;

// The sections of a step, in their order.
constexpr ir::SectionKind kStep[] = {ir::SectionKind::kForward, ir::SectionKind::kBackward,
                                     ir::SectionKind::kUpdate};

// The time at which each queue has done the work put into it so far.
class TwoQueues {
 public:
  TwoQueues(const ir::Graph& graph, const Machine& machine) {
    for (const ir::SectionKind kind : kStep) {
      for (const ir::Node* node : graph.section(kind)->nodes) {
        const int index = static_cast<int>(nodes_.size());
        nodes_[node] = {index, ComputeMs(graph, *node, machine)};
        if (!ir::MovesData(*node)) continue;
        nodes_[node].transfer = TransferPriceOf(graph, *node, machine);
      }
    }
  }

  void Step(const ir::Graph& graph, int64_t micro_steps) {
    for (int64_t j = 0; j < micro_steps; ++j) {
      last_begin_ms_ = now_ms_;
      computing_.clear();
      RunSection(*graph.section(ir::SectionKind::kForward));
      RunSection(*graph.section(ir::SectionKind::kBackward));
    }
    RunSection(*graph.section(ir::SectionKind::kUpdate));
  }

  // Resets what was added up, not the queues.
  void ForgetSums() {
    waited_ms_.clear();
    slowed_ms_ = 0;
  }
  double slowed_ms() const { return slowed_ms_; }
  double transfer_ms(const ir::Node* node) const { return nodes_.at(node).transfer.ms; }
  double waited_ms(const ir::Node* node) const {
    const auto found = waited_ms_.find(node);
    return found == waited_ms_.end() ? 0 : found->second;
  }

  // Since the last micro-batch began.
  std::vector<QueueSlice> Computing() const { return SlicesOf(computing_); }
  std::vector<QueueSlice> Sending() const { return SlicesOf(transfers_); }

 private:
  struct NodeTimes {
    int index = 0;
    double compute_ms = 0;
    PriceList::TransferPrice transfer = {};
    double done_ms = 0;  // end of the last of its transfers
  };
  struct Run {
    const ir::Node* node;
    double begin_ms;
    double end_ms;
    double processor_share = 0;  // that a transfer takes of the computation's processor
  };

  void RunSection(const ir::Section& section) {
    for (const ir::Node* node : section.nodes) {
      if (node->op->traits.kind == ir::OpKind::kWait) {
        for (const ir::Node* start : ir::StartsOf(*node)) WaitUntil(nodes_[start].done_ms);
        continue;
      }
      NodeTimes& times = nodes_.at(node);
      const double computes_from_ms = now_ms_;
      Compute(times.compute_ms);
      computing_.push_back({node, computes_from_ms, now_ms_});
      if (!ir::MovesData(*node)) continue;
      const double begin_ms =
          transfers_.empty() ? now_ms_ : std::max(now_ms_, transfers_.back().end_ms);
      const PriceList::TransferPrice& price = times.transfer;
      times.done_ms = begin_ms + price.ms;
      const double share = price.ms > 0 ? std::min(1.0, price.processor_ms / price.ms) : 0;
      transfers_.push_back({node, begin_ms, times.done_ms, share});
      if (!ir::IsStart(*node)) WaitUntil(times.done_ms);
    }
  }

  // Advances by the work of a node, which transfers in flight slow down.
  void Compute(double work_ms) {
    const double unslowed_ms = now_ms_ + work_ms;
    for (; in_flight_ < transfers_.size(); ++in_flight_) {
      const Run& transfer = transfers_[in_flight_];
      if (transfer.end_ms <= now_ms_ || transfer.processor_share == 0) continue;
      const double before_ms = std::clamp(transfer.begin_ms - now_ms_, 0.0, work_ms);
      now_ms_ += before_ms;
      work_ms -= before_ms;
      if (work_ms <= 0) break;
      const double rate = 1 - transfer.processor_share;
      const double beside_ms = rate * (transfer.end_ms - now_ms_);
      if (work_ms < beside_ms) {
        now_ms_ += work_ms / rate;
        work_ms = 0;
        break;
      }
      now_ms_ = transfer.end_ms;
      work_ms -= beside_ms;
    }
    now_ms_ += work_ms;
    slowed_ms_ += now_ms_ - unslowed_ms;
  }

  // Time until then counts as waiting for all transfers in flight, whichever the computation needs.
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

  std::vector<QueueSlice> SlicesOf(const std::vector<Run>& runs) const {
    std::vector<QueueSlice> slices;
    for (const Run& run : runs) {
      if (run.end_ms <= last_begin_ms_ || run.end_ms == run.begin_ms) continue;
      slices.push_back({nodes_.at(run.node).index, std::max(0.0, run.begin_ms - last_begin_ms_),
                        run.end_ms - last_begin_ms_});
    }
    return slices;
  }

  std::unordered_map<const ir::Node*, NodeTimes> nodes_;
  std::unordered_map<const ir::Node*, double> waited_ms_;
  std::vector<Run> transfers_;  // in their order
  size_t in_flight_ = 0;        // those before it are over
  std::vector<Run> computing_;  // since the last micro-batch began
  double last_begin_ms_ = 0;    // begin of that micro-batch
  double now_ms_ = 0;           // of the computation
  double slowed_ms_ = 0;
};

}  // namespace

StepOnQueues LayOnTwoQueues(const ir::Graph& graph, const Machine& machine) {
  TwoQueues queues(graph, machine);
  const bool overlaps = Overlaps(graph);
  if (overlaps) {
    const int64_t micro_steps = RunsPerStep(graph, *graph.section(ir::SectionKind::kForward));
    queues.Step(graph, micro_steps);
    queues.ForgetSums();
    queues.Step(graph, micro_steps);
  } else {
    queues.Step(graph, 1);  // all micro-batches are alike
  }
  StepOnQueues step;
  for (const ir::SectionKind kind : kStep) {
    const ir::Section& section = *graph.section(kind);
    const auto runs = static_cast<double>(RunsPerStep(graph, section));
    for (const ir::Node* node : section.nodes) {
      if (!ir::MovesData(*node)) continue;
      const double ms = queues.transfer_ms(node) * runs;
      const double waited_ms = queues.waited_ms(node);
      const bool is_hidden = overlaps && ms - waited_ms > kRounding * ms;
      const TransferTime time = {ms, is_hidden ? waited_ms : ms};
      step.transfers[node] = time;
      step.hidden_ms += time.hidden_ms();
    }
  }
  step.slowed_ms = queues.slowed_ms();
  step.computing = queues.Computing();
  step.sending = queues.Sending();
  return step;
}

}  // namespace zg::plan
