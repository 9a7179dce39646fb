// Profiler: measures the time of the nodes of training steps on one rank. The executor reports when
// they begin and end; the result is a Profile and its table. On request it also records when each
// node of the first steps ran (Timeline).
//
// The first step, which warms caches and pages, counts in a profile only as long as it is the only
// one.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/ir/variant.h"

namespace zg {

// The nodes of one op in one section; everything per step, on one rank.
struct ProfileRow {
  std::string op;
  std::string section;
  int64_t calls = 0;
  double ms = 0;     // for a collective: including the wait for other ranks
  double flops = 0;  // 0: the op has none
  double bytes = 0;  // of inputs and outputs, counted whole

  // 0 also if a call is too short for a meaningful rate, such as when all bytes are in place.
  double gflops_per_s() const;
  double gb_per_s() const;
};

// The nodes of a row that have the same types, as price lists use them (plan/price_list.h).
struct ProfileCalls {
  std::string op;
  std::string section;
  std::string types;  // LocalTypesText
  int64_t calls = 0;
  double ms = 0;
  double flops = 0;
  double bytes = 0;
};

// The collectives of one op that have the same types, whether they ran in their place or beside the
// computation in a thread of their own.
struct ProfileTransfers {
  std::string op;
  std::string section;
  std::string types;  // LocalTypesText
  int64_t calls = 0;
  double ms = 0;            // including the wait for other ranks
  double processor_ms = 0;  // that their thread took of a processor
  double bytes = 0;         // sent
};

// The nodes of one module, including its submodules beyond a depth; ms per step, on one rank.
struct ProfileModule {
  std::string module;  // "blocks.3.attention"; "": nodes that no module made
  double forward_ms = 0;
  double backward_ms = 0;
  double update_ms = 0;

  double ms() const { return forward_ms + backward_ms + update_ms; }
};

struct Profile {
  int64_t steps = 0;     // number of measured steps
  bool is_warm = false;  // they are those after the first; otherwise it is the first alone
  double step_ms = 0;
  double feed_ms = 0;                       // the part in which the caller sets inputs
  std::vector<ProfileRow> rows;             // the longest first
  std::vector<ProfileModule> modules = {};  // the same nodes; the longest first
  std::vector<ProfileCalls> calls = {};     // the same nodes
  std::vector<ProfileTransfers> transfers = {};
  Variant variant = {};  // of the program that ran

  double between_nodes_ms() const;  // the rest of the step
  double Share(double ms) const { return step_ms > 0 ? ms / step_ms : 0; }
};

// One line per row, then feeding, the rest, and the step that all of them add up to.
std::string ProfileTable(const Profile& profile);

// One line per module for the longest ones, then the others together, and the total of the nodes.
std::string ProfileModuleTable(const Profile& profile);

// The types of a node's inputs and outputs on one rank: "f32[8,4], f32[4,2] -> f32[8,2]".
std::string LocalTypesText(const ir::Graph& graph, const ir::Node& node);

// The bytes of all of them together.
int64_t LocalBytes(const ir::Graph& graph, const ir::Node& node);

using NanosecondClock = int64_t (*)();  // monotonic
int64_t SteadyNanoseconds();
int64_t ThreadProcessorNanoseconds();  // that the calling thread has taken

// The times of one rank's nodes on the profiler's clock, in the order of their ends.
struct TimelineSlice {
  const ir::Node* node = nullptr;  // null: the caller set inputs
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};
struct TimelineStep {
  int64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};
struct Timeline {
  std::vector<TimelineStep> steps;
  std::vector<TimelineSlice> slices;  // of all recorded steps
  // Transfers that ran beside them in a thread of their own, including the wait for other ranks;
  // some may have ended later (Executor::Settle).
  std::vector<TimelineSlice> transfers = {};
};

class Profiler {
 public:
  explicit Profiler(NanosecondClock clock) : clock_(clock) {}

  // Call before the first step: keeps a timeline of so many steps, of at most so many slices each,
  // and the first transfers of these steps, with the same limit.
  void KeepTimeline(int64_t num_steps, int64_t slices_per_step, int64_t transfers_per_step);

  // Call before the first step: registers the node that later calls name by `index`. The graph must
  // outlive this.
  void AddNode(int index, const ir::Graph& graph, const ir::Node& node);

  int64_t Now() const { return clock_(); }
  void BeginStep(int64_t step);
  void EndStep();
  void EndFeed(int64_t begin);
  void EndNode(int index, int64_t begin);

  // A transfer of a step, called in the thread that runs it, which may be in a later step's time.
  // Transfers run one after the other, in the order of their steps.
  struct TransferBegin {
    int64_t ns = 0;
    int64_t processor_ns = 0;
  };
  TransferBegin BeginTransfer() const { return {Now(), ThreadProcessorNanoseconds()}; }
  void EndTransfer(const ir::Node& node, int64_t step, const TransferBegin& begin);

  std::optional<Profile> Result() const;  // none before a step has ended
  const Timeline& timeline() const { return timeline_; }

 private:
  struct MeasuredNode {
    const ir::Node* node = nullptr;
    std::string types;
    int64_t flops = 0;  // of one call; likewise the bytes
    int64_t bytes = 0;
    int64_t calls = 0;
    int64_t ns = 0;
  };

  struct MeasuredTransfer {
    std::string types;
    int64_t bytes = 0;  // of one call
    int64_t calls = 0;
    int64_t ns = 0;
    int64_t processor_ns = 0;
  };

  std::vector<ProfileTransfers> ResultOfTransfers(int64_t steps) const;

  NanosecondClock clock_;
  std::vector<MeasuredNode> nodes_;  // by index
  mutable std::mutex transfers_mutex_;
  std::unordered_map<const ir::Node*, MeasuredTransfer> transfers_;
  int64_t transfers_step_ = 0;   // of the last transfer
  int64_t transfers_steps_ = 0;  // steps that transfers were of
  int64_t steps_ended_ = 0;
  int64_t step_ = 0;
  int64_t step_begin_ = 0;
  int64_t step_ns_ = 0;
  int64_t feed_ns_ = 0;
  int64_t timeline_steps_ = 0;  // yet to be kept
  int64_t transfers_to_keep_ = 0;
  bool keeps_slices_ = false;  // in the current step
  Timeline timeline_;
};

}  // namespace zg
