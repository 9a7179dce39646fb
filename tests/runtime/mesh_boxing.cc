#include "tests/runtime/mesh_boxing.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ir/verifier.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/insert_collectives.h"
#include "framework/passes/predict_traffic.h"
#include "framework/runtime/executor.h"

namespace zg::testing {
namespace {

const Shape kShape = {24, 24};  // both dims divide by 8 ranks and by 6

struct Change {
  NdSbp from;
  NdSbp to;
};

// Along an axis of one rank everything is B, as infer-sbp places it.
std::vector<NdSbp> AllPlacements(const Mesh& mesh) {
  std::vector<NdSbp> placements = {{}};
  for (const MeshAxis& axis : mesh.axes()) {
    std::vector<NdSbp> longer;
    for (const NdSbp& placement : placements) {
      for (const Sbp sbp : {Sbp::B(), Sbp::S(0), Sbp::S(1), Sbp::P()}) {
        if (axis.size == 1 && !sbp.is_broadcast()) continue;
        longer.push_back(placement);
        longer.back().push_back(sbp);
      }
    }
    placements = std::move(longer);
  }
  return placements;
}

// On two axes all changes; on three those along one axis, and those of a sum over all.
std::vector<Change> ChangesOn(const Mesh& mesh) {
  std::vector<Change> changes;
  for (const NdSbp& from : AllPlacements(mesh)) {
    for (const NdSbp& to : AllPlacements(mesh)) {
      int num_changed = 0;
      int num_partial = 0;
      for (int axis = 0; axis < mesh.num_axes(); ++axis) {
        num_changed += from[axis] != to[axis];
        num_partial += from[axis].is_partial();
      }
      if (mesh.num_axes() == 2 || num_changed <= 1 || num_partial == mesh.num_axes()) {
        changes.push_back({from, to});
      }
    }
  }
  return changes;
}

// A term of element `element`: signs and magnitudes are mixed, so that another order of addition is
// detected. Zero where the value has no term.
float TermOf(int64_t element, int64_t term) {
  uint64_t x = (element * 1000003 + term + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 27;
  const auto bits = static_cast<uint32_t>((x & 0x807FFFFF) | (127 - 12 + (x >> 32) % 25) << 23);
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// One rank's part of a value with a placement, element by element.
class LocalView {
 public:
  LocalView(const Mesh& mesh, const NdSbp& sbp, int rank)
      : mesh_(mesh), sbp_(sbp), rank_(rank), local_(LocalShape(kShape, sbp, mesh)) {}

  int64_t num_elements() const { return local_.num_elements(); }

  // The element of the logical value.
  int64_t ElementAt(int64_t local_element) const {
    int64_t index[2] = {local_element / local_.dim(1), local_element % local_.dim(1)};
    for (int dim = 0; dim < 2; ++dim) {
      int64_t part = 0;  // index of the part along the dim, the first axis outermost
      for (int axis = 0; axis < mesh_.num_axes(); ++axis) {
        if (sbp_[axis] != Sbp::S(dim)) continue;
        part = part * mesh_.axes()[axis].size + mesh_.Coordinate(rank_, axis);
      }
      index[dim] += part * local_.dim(dim);
    }
    return index[0] * kShape.dim(1) + index[1];
  }

 private:
  const Mesh& mesh_;
  const NdSbp& sbp_;
  const int rank_;
  const Shape local_;
};

// The index of a rank's term of a value that is partial along the axes where `is_partial` holds.
template <typename IsPartial>
int64_t TermIndex(const Mesh& mesh, int rank, const IsPartial& is_partial) {
  int64_t index = 0;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    index = index * 8 + (is_partial(axis) ? mesh.Coordinate(rank, axis) : 0);
  }
  return index;
}

// The expected value on `rank` after `change` at the element: the sum of the terms, in rank order.
float ExpectedAt(const Mesh& mesh, const Change& change, int rank, int64_t element) {
  std::vector<int> summed;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (change.from[axis].is_partial() && !change.to[axis].is_partial()) summed.push_back(axis);
  }
  bool is_first = true;
  float sum = 0;
  for (const int contributor : mesh.RanksAlong(rank, summed)) {
    const float term = TermOf(element, TermIndex(mesh, contributor, [&](int axis) {
                                return change.from[axis].is_partial();
                              }));
    sum = is_first ? term : sum + term;
    is_first = false;
  }
  return sum;
}

struct Placed {
  Change change;
  ir::Value* source = nullptr;  // variable with placement `from`
  ir::Value* result = nullptr;  // variable with placement `to`
};

StatusOr<ir::Value*> AddVariable(ir::Graph& graph, const NdSbp& sbp, const std::string& name) {
  ZG_ASSIGN_OR_RETURN(
      ir::Node* const node,
      graph.AddNode(graph.section(ir::SectionKind::kVariables),
                    {"variable", {}, {{"dtype", DType::kF32}, {"shape", kShape}}, "", name}));
  node->outputs[0]->sbp = sbp;
  return node->outputs[0];
}

StatusOr<std::vector<Placed>> AddChanges(ir::Graph& graph, const std::vector<Change>& changes) {
  std::vector<Placed> all;
  ir::Builder builder(&graph, graph.section(ir::SectionKind::kUpdate));
  for (size_t i = 0; i < changes.size(); ++i) {
    Placed placed = {changes[i]};
    ZG_ASSIGN_OR_RETURN(placed.source, AddVariable(graph, changes[i].from, fmt::format("x{}", i)));
    ZG_ASSIGN_OR_RETURN(placed.result, AddVariable(graph, changes[i].to, fmt::format("y{}", i)));
    ir::Value* const moved =
        builder.Op("place", {placed.source}, {{"sbp", changes[i].to}}, fmt::format("moved{}", i));
    ZG_RETURN_IF_ERROR(builder.status());
    builder.Ops("assign", {placed.result, moved});
    ZG_RETURN_IF_ERROR(builder.status());
    all.push_back(placed);
  }
  return all;
}

class Checker {
 public:
  Checker(Communicator& communicator, const Mesh& mesh)
      : communicator_(communicator), mesh_(mesh) {}

  Status Run() {
    ir::Graph graph("boxing", mesh_, mesh_.num_data_ranks());
    ZG_ASSIGN_OR_RETURN(const std::vector<Placed> all, AddChanges(graph, ChangesOn(mesh_)));
    ZG_RETURN_IF_ERROR(InsertCollectives().Run(graph).status());
    ir::VerifyOptions verify;
    verify.collectives_inserted = true;
    ZG_RETURN_IF_ERROR(ir::Verify(graph, verify));
    ExecutorOptions options;
    ZG_ASSIGN_OR_RETURN(executor_, Executor::Create(&graph, CpuKernels(), &communicator_, options));
    for (const Placed& placed : all) Fill(placed);
    ZG_RETURN_IF_ERROR(communicator_.Barrier("values are set"));
    const TrafficCounters before = communicator_.traffic();
    ZG_RETURN_IF_ERROR(executor_->RunStep(1, 1.0, [](int64_t) { return Status::Ok(); }));
    ZG_RETURN_IF_ERROR(CheckTraffic(graph, before));
    for (const Placed& placed : all) ZG_RETURN_IF_ERROR(Check(placed));
    return Status::Ok();
  }

 private:
  float* Local(const ir::Value* value) const {
    return reinterpret_cast<float*>(communicator_.arena().data() +
                                    executor_->plan().OffsetOn(value, communicator_.rank()));
  }

  void Fill(const Placed& placed) const {
    const int rank = communicator_.rank();
    const LocalView view(mesh_, placed.change.from, rank);
    const int64_t term =
        TermIndex(mesh_, rank, [&](int axis) { return placed.change.from[axis].is_partial(); });
    float* const local = Local(placed.source);
    for (int64_t i = 0; i < view.num_elements(); ++i) local[i] = TermOf(view.ElementAt(i), term);
  }

  // Where a sum has become pending, the terms of all ranks along these axes together are the value.
  Status Check(const Placed& placed) const {
    const auto& [from, to] = placed.change;
    const int rank = communicator_.rank();
    const LocalView view(mesh_, to, rank);
    const int64_t bytes = view.num_elements() * static_cast<int64_t>(sizeof(float));
    std::vector<int> pending;
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) {
      if (to[axis].is_partial() && !from[axis].is_partial()) pending.push_back(axis);
    }
    std::vector<float> got(view.num_elements());
    std::memcpy(got.data(), Local(placed.result), bytes);
    if (!pending.empty()) {
      ZG_ASSIGN_OR_RETURN(
          const std::vector<std::string> all,
          communicator_.Exchange("terms",
                                 std::string(reinterpret_cast<const char*>(got.data()), bytes)));
      std::fill(got.begin(), got.end(), 0.0f);
      for (const int other : mesh_.RanksAlong(rank, pending)) {
        std::vector<float> term(got.size());
        std::memcpy(term.data(), all[other].data(), bytes);
        for (size_t i = 0; i < got.size(); ++i) got[i] += term[i];
      }
    }
    for (int64_t i = 0; i < view.num_elements(); ++i) {
      const float expected = ExpectedAt(mesh_, placed.change, rank, view.ElementAt(i));
      if (std::memcmp(&got[i], &expected, sizeof(float)) == 0) continue;
      return InvalidArgument("{} -> {} on mesh({}), rank {}, local element {}: got {}, expected {}",
                             ToString(from), ToString(to), mesh_.ToString(), rank, i, got[i],
                             expected);
    }
    return Status::Ok();
  }

  // Rank 0 has measured its predicted traffic.
  Status CheckTraffic(const ir::Graph& graph, const TrafficCounters& before) const {
    if (communicator_.rank() > 0) return Status::Ok();
    std::map<std::string, PredictedTraffic> predicted = PredictTraffic(graph);
    for (int i = 0; i < kNumCollectiveKinds; ++i) {
      const std::string name(CollectiveName(static_cast<CollectiveKind>(i)));
      const int64_t count = communicator_.traffic()[i].count - before[i].count;
      const int64_t bytes = communicator_.traffic()[i].bytes - before[i].bytes;
      if (predicted[name].count == count && predicted[name].bytes == bytes) continue;
      return InvalidArgument("{} on mesh({}): {} calls and {} bytes, predicted {} and {}", name,
                             mesh_.ToString(), count, bytes, predicted[name].count,
                             predicted[name].bytes);
    }
    return Status::Ok();
  }

  Communicator& communicator_;
  const Mesh& mesh_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace

int NumChangesOfPlacement(const Mesh& mesh) { return static_cast<int>(ChangesOn(mesh).size()); }

Status CheckBoxing(Communicator& communicator, const Mesh& mesh) {
  RegisterAllOps();
  return Checker(communicator, mesh).Run();
}

}  // namespace zg::testing
