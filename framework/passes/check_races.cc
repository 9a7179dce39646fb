#include "framework/passes/check_races.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/stopwatch.h"
#include "framework/ir/printer.h"

namespace zg {
namespace {

// Bytes [begin, end) of the arena, of any rank.
struct Access {
  int64_t begin = 0;
  int64_t end = 0;
  bool writes = false;
  const std::string* name = nullptr;  // of the value, or of the buffer
  bool ConflictsWith(const Access& other) const {
    return (writes || other.writes) && begin < other.end && other.begin < end;
  }
};

using Accesses = std::vector<Access>;

class Checker {
 public:
  Checker(const ir::Graph& graph, const MemoryPlan& plan) : graph_(graph), plan_(plan) {
    for (const ir::Node* node : graph.AllNodes()) accesses_[node] = AccessesOf(*node);
  }

  StatusOr<RaceProof> Run() {
    const auto section = [&](ir::SectionKind kind) -> const ir::Section& {
      return *graph_.section(kind);
    };
    const int64_t micro_steps = graph_.micro_batches() / graph_.mesh().num_data_ranks();
    for (int step = 0; step < 2; ++step) {
      ++step_;
      for (int64_t j = 0; j < std::min<int64_t>(2, micro_steps); ++j) {
        ZG_RETURN_IF_ERROR(Run(section(ir::SectionKind::kForward)));
        ZG_RETURN_IF_ERROR(Run(section(ir::SectionKind::kBackward)));
      }
      ZG_RETURN_IF_ERROR(Run(section(ir::SectionKind::kUpdate)));
      for (const InFlight& transfer : in_flight_) {
        if (transfer.step < step_) return NobodyWaits(*transfer.node);
      }
    }
    in_flight_.clear();  // code between steps waits for all transfers (Executor::Settle)
    for (const auto& eval : graph_.sections()) {
      if (eval->kind != ir::SectionKind::kEval) continue;
      ZG_RETURN_IF_ERROR(Run(*eval));
      if (!in_flight_.empty()) return NobodyWaits(*in_flight_.front().node);
    }
    return proof_;
  }

 private:
  struct InFlight {
    const ir::Node* node = nullptr;
    int step = 0;
  };

  static Status NobodyWaits(const ir::Node& start) {
    return InvalidArgument("{}: nobody waits for this transfer", ir::NodeLabel(start));
  }

  Access AccessTo(const ir::Value& value, bool writes) const {
    Access access{0, 0, writes, &value.name};
    access.begin = plan_.BaseOffset(&value);
    access.end = access.begin + graph_.LocalType(value).bytes();
    const std::vector<int64_t>& strides = plan_.storage.Of(&value).axis_stride_bytes;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      access.end += strides[axis] * (graph_.mesh().axes()[axis].size - 1);
    }
    return access;
  }

  Accesses AccessesOf(const ir::Node& node) const {
    Accesses accesses;
    switch (node.op->traits.kind) {
      case ir::OpKind::kVariable:
      case ir::OpKind::kView:
      case ir::OpKind::kWait:
        return accesses;
      case ir::OpKind::kAssign: {
        const Access to = AccessTo(*node.inputs[0], true);
        const Access from = AccessTo(*node.inputs[1], false);
        if (to.begin != from.begin) accesses = {from, to};
        return accesses;
      }
      default:
        break;
    }
    for (const ir::Value* input : node.inputs) accesses.push_back(AccessTo(*input, false));
    for (const ir::Value* output : node.outputs) accesses.push_back(AccessTo(*output, true));
    const auto workspace = plan_.workspaces.find(&node);
    if (workspace != plan_.workspaces.end()) Add(workspace->second, &accesses);
    if (ir::MovesData(node) && plan_.communicator_workspace >= 0) {
      Add(plan_.communicator_workspace, &accesses);
    }
    return accesses;
  }

  void Add(int buffer, Accesses* accesses) const {
    const PlannedBuffer& planned = plan_.buffers[buffer];
    accesses->push_back({planned.offset, planned.offset + planned.bytes, true, &planned.name});
  }

  Status Run(const ir::Section& section) {
    for (const ir::Node* node : section.nodes) {
      if (node->op->traits.kind == ir::OpKind::kWait) {
        ZG_RETURN_IF_ERROR(Wait(*node));
      } else if (ir::IsStart(*node)) {
        ++proof_.transfers;
        ++num_starts_[node];
        in_flight_.push_back({node, step_});
      } else if (ir::MovesData(*node)) {
        in_flight_.clear();  // the wait is for this transfer, and so for all before it
      } else {
        for (const InFlight& transfer : in_flight_) {
          ZG_RETURN_IF_ERROR(Compare(*node, *transfer.node));
        }
      }
    }
    return Status::Ok();
  }

  Status Wait(const ir::Node& wait) {
    const std::vector<ir::Node*> starts = ir::StartsOf(wait);
    const bool is_of_variable = ir::IsVariable(*wait.inputs[0]);
    size_t finished = 0;
    for (const ir::Node* start : starts) {
      if (!is_of_variable && num_starts_[start] == 0) {
        return InvalidArgument("{}: it waits for {}, which was not started", ir::NodeLabel(wait),
                               ir::NodeLabel(*start));
      }
      for (size_t i = 0; i < in_flight_.size(); ++i) {
        if (in_flight_[i].node == start) finished = std::max(finished, i + 1);
      }
    }
    if (starts.empty()) {
      return InvalidArgument("{}: it waits for what no transfer writes to", ir::NodeLabel(wait));
    }
    in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<int64_t>(finished));
    return Status::Ok();
  }

  Status Compare(const ir::Node& node, const ir::Node& transfer) {
    for (const Access& access : accesses_.at(&node)) {
      ++proof_.accesses;
      for (const Access& moved : accesses_.at(&transfer)) {
        if (!access.ConflictsWith(moved)) continue;
        return InvalidArgument("{} {} bytes [{}, {}) of %{} while {} {} [{}, {}) of %{}",
                               ir::NodeLabel(node), access.writes ? "writes" : "reads",
                               access.begin, access.end, *access.name, ir::NodeLabel(transfer),
                               moved.writes ? "writes" : "reads", moved.begin, moved.end,
                               *moved.name);
      }
    }
    return Status::Ok();
  }

  const ir::Graph& graph_;
  const MemoryPlan& plan_;
  std::unordered_map<const ir::Node*, Accesses> accesses_;
  std::unordered_map<const ir::Node*, int64_t> num_starts_;
  std::vector<InFlight> in_flight_;  // in the order of completion
  int step_ = 0;
  RaceProof proof_;
};

}  // namespace

StatusOr<RaceProof> CheckRaces(const ir::Graph& graph, const MemoryPlan& plan) {
  const Stopwatch stopwatch;
  StatusOr<RaceProof> proof = Checker(graph, plan).Run();
  if (proof.ok()) proof->ms = stopwatch.ms();
  return proof;
}

}  // namespace zg
