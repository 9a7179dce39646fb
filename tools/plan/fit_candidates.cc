#include "tools/plan/fit_candidates.h"

#include <algorithm>

#include "framework/passes/zero_stage.h"
#include "tools/plan/model_graph.h"

namespace zg::plan {
namespace {

constexpr int kMostTensorRanks = 8;  // if the number of ranks per host is unknown

// The divisors up to `most`, in ascending order.
std::vector<int64_t> DivisorsOf(int64_t number, int64_t most) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    divisors.push_back(divisor);
    if (divisor != number / divisor) divisors.push_back(number / divisor);
  }
  std::sort(divisors.begin(), divisors.end());
  divisors.erase(std::upper_bound(divisors.begin(), divisors.end(), most), divisors.end());
  return divisors;
}

// The ways to lay out data ranks, `local` of which share a host.
std::vector<std::vector<MeshAxis>> DataMeshes(int data_ranks, int local) {
  std::vector<std::vector<MeshAxis>> meshes = {{{"data", data_ranks}}};
  if (local > 1 && local < data_ranks && data_ranks % local == 0) {
    meshes.push_back({{"data", data_ranks / local}, {"shard", local}});
  }
  for (int copies = 2; copies < data_ranks; copies *= 2) {
    if (data_ranks % copies != 0) continue;
    meshes.push_back({{"replica", copies}, {"shard", data_ranks / copies}});
  }
  return meshes;
}

std::vector<std::vector<MeshAxis>> Meshes(const PlanOptions& options) {
  if (!options.fit_choices.mesh) return {options.compile.mesh};
  const int per_host = options.machine.ranks_per_host;
  const bool has_rules = !options.compile.placement.empty();
  std::vector<std::vector<MeshAxis>> meshes;
  const int most_tensor = per_host > 0 ? per_host : kMostTensorRanks;
  for (const int64_t divisor : DivisorsOf(options.ranks, has_rules ? most_tensor : 1)) {
    const int tensor = static_cast<int>(divisor);
    for (std::vector<MeshAxis>& mesh :
         DataMeshes(options.ranks / tensor, per_host > 0 ? per_host / tensor : 0)) {
      if (tensor > 1) mesh.push_back({"tensor", tensor});
      meshes.push_back(std::move(mesh));
    }
  }
  return meshes;
}

// One stage for all parameters, or a different stage for the blocks.
std::vector<ZeroOptions> Stages(const PlanOptions& options, const Mesh& mesh) {
  const ZeroOptions& given = options.compile.zero;
  if (!options.fit_choices.stages) return {given};
  const std::string blocks = BlocksOf(options.model);
  const int most = mesh.ShardAxes().empty() ? 0 : kLastStage;
  std::vector<ZeroOptions> choices;
  for (int stage = 0; stage <= most; ++stage) {
    for (int of_blocks = 0; of_blocks <= most; ++of_blocks) {
      if (of_blocks != stage && blocks.empty()) continue;
      ZeroOptions zero = given;
      zero.set_stage(stage);
      if (of_blocks != stage) zero.place(blocks, of_blocks);
      choices.push_back(zero);
      if (zero.highest_stage() < kLastStage || mesh.ShardAxes().size() < 2) continue;
      zero.secondary_axis = mesh.axes()[mesh.ShardAxes().back()].name;
      choices.push_back(zero);
    }
  }
  return choices;
}

std::vector<std::vector<std::string>> Recomputations(const PlanOptions& options) {
  const std::string blocks = BlocksOf(options.model);
  if (!options.fit_choices.recompute || blocks.empty()) return {options.compile.recompute};
  return {{}, {blocks}};
}

}  // namespace

std::vector<PlanOptions> FitCandidates(const PlanOptions& options) {
  const int64_t samples = options.batch * options.compile.micro_batches;
  std::vector<PlanOptions> candidates;
  for (const std::vector<MeshAxis>& axes : Meshes(options)) {
    const Mesh mesh = axes.empty() ? Mesh::DataParallel(options.ranks) : Mesh(axes);
    const int64_t of_rank = samples / mesh.num_data_ranks();
    if (of_rank * mesh.num_data_ranks() != samples) continue;
    PlanOptions candidate = options;
    candidate.compile.mesh = axes.size() == 1 && axes[0].name == "data"
                                 ? std::vector<MeshAxis>()  // as without --mesh
                                 : axes;
    if (mesh.FindAxis("tensor") < 0 && options.fit_choices.mesh)
      candidate.compile.placement.clear();
    for (const ZeroOptions& zero : Stages(options, mesh)) {
      candidate.compile.zero = zero;
      for (const std::vector<std::string>& recompute : Recomputations(options)) {
        candidate.compile.recompute = recompute;
        for (const int64_t batch : DivisorsOf(of_rank, of_rank)) {
          if (options.compile.update_early && batch != of_rank) continue;
          candidate.batch = batch;
          candidate.compile.micro_batches = samples / batch;
          candidates.push_back(candidate);
        }
      }
    }
  }
  return candidates;
}

}  // namespace zg::plan
