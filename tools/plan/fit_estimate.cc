#include "tools/plan/fit_estimate.h"

#include <algorithm>
#include <cstdint>

#include "framework/comm/sum_route.h"
#include "framework/ops/op_names.h"
#include "tools/plan/model_graph.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

constexpr int64_t kBlocks[2] = {2, 4};
constexpr int64_t kSamples[2] = {1, 2};

int64_t NumBlocks(const PlanOptions& options) {
  return options.model == "llama" ? options.llama.layers : options.layers;
}

int TensorRanks(const PlanOptions& options) {
  const Mesh mesh(options.compile.mesh);
  const int axis = mesh.FindAxis("tensor");
  return axis < 0 ? 1 : mesh.axes()[axis].size;
}

// The model with few blocks and samples on the ranks along tensor and two data ranks, at stage 1.
PlanOptions Small(PlanOptions options, int64_t blocks, int64_t samples) {
  const int tensor = TensorRanks(options);
  options.ranks = 2 * tensor;
  options.compile.mesh.clear();
  if (tensor > 1) options.compile.mesh = {{"data", 2}, {"tensor", tensor}};
  options.compile.zero.set_stage(1);
  options.compile.micro_batches = 2;
  options.compile.dump_directory.clear();
  options.batch = samples;
  if (!BlocksOf(options.model).empty()) {
    options.layers = blocks;
    options.llama.layers = blocks;
  }
  return options;
}

double BytesOf(const JobPlan& plan, MemoryCategory category) {
  return static_cast<double>(plan.category_bytes[static_cast<int>(category)]);
}

double MostActivationsAndWorkspace(const JobPlan& plan) {
  int64_t most = 0;
  for (const ScheduledNode& node : plan.schedule) {
    most = std::max(most, node.alive[static_cast<int>(MemoryCategory::kActivations)] +
                              node.alive[static_cast<int>(MemoryCategory::kWorkspace)]);
  }
  return static_cast<double>(most);
}

// The number of sharded buckets.
double NumBuckets(const JobPlan& plan) {
  const auto reductions = plan.traffic.find(op_names::kReduceScatter);
  return reductions == plan.traffic.end() ? 0 : static_cast<double>(reductions->second.count);
}

double LargestGradientBucket(const JobPlan& plan) {
  int64_t largest = 0;
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (buffer.category == MemoryCategory::kGradients) largest = std::max(largest, buffer.bytes);
  }
  return static_cast<double>(largest);
}

// Adds up the time of the collectives between data ranks.
class DataLinks {
 public:
  DataLinks(const Mesh& mesh, const Machine& machine, DType dtype)
      : mesh_(mesh), machine_(machine), dtype_(dtype), hosts_(HostsOf(mesh, machine)) {}

  double ms() const { return ms_; }

  // Sums gradients of so many bytes, of which every rank along the axes gets an equal part, in so many
  // collectives; `times` times, into an accumulator if it is more than once.
  void Sum(double bytes, const std::vector<int>& axes, double collectives, double times) {
    const std::vector<int> ranks = mesh_.RanksAlong(0, axes);
    const auto peers = static_cast<double>(ranks.size() - 1);
    if (peers == 0) return;
    const Elsewhere elsewhere = CountElsewhere(ranks, machine_.ranks_per_host);
    const double part = bytes / (peers + 1);
    const auto term = static_cast<double>(SizeOf(dtype_));
    const ReductionTypes types(dtype_, times > 1 ? DType::kF32 : dtype_);
    double remote = static_cast<double>(elsewhere.ranks);  // in parts
    if (remote > 0 &&
        MayGoAlongHosts(types, static_cast<int64_t>(part / term / std::max(1.0, collectives)))) {
      std::vector<int> hosts;
      for (const int rank : ranks) hosts.push_back(hosts_[rank]);
      remote = static_cast<double>(MostBytesBetweenHosts(hosts, SumBytesOf(types, times > 1))) /
               term / (peers + 1 - remote);
    }
    const double local = std::max(peers - remote, peers - static_cast<double>(elsewhere.ranks));
    AddParts(part * times, local, remote, collectives * times * peers);
  }

  // Gathers so many bytes, of which every rank along the axes has an equal part.
  void Gather(double bytes, const std::vector<int>& axes, double collectives, double times) {
    const std::vector<int> ranks = mesh_.RanksAlong(0, axes);
    const auto peers = static_cast<double>(ranks.size() - 1);
    if (peers == 0) return;
    const Elsewhere elsewhere = CountElsewhere(ranks, machine_.ranks_per_host);
    AddParts(bytes / (peers + 1) * times, peers - static_cast<double>(elsewhere.ranks),
             static_cast<double>(elsewhere.receivers), collectives * times * peers);
  }

  // Gathers values that are split over the axes, one axis after the other from the last, to so many
  // bytes.
  void GatherByAxis(double bytes, const std::vector<int>& axes, double collectives, double times) {
    for (const int axis : axes) {
      Gather(bytes, {axis}, collectives, times);
      bytes /= mesh_.axes()[axis].size;
    }
  }

 private:
  // So many parts, of `bytes` each, inside a host and between hosts.
  void AddParts(double bytes, double local, double remote, double messages) {
    ms_ += bytes * local / machine_.bandwidth_gb_s / 1e6 +
           bytes * remote / machine_.host_bandwidth_gb_s / 1e6 +
           messages * machine_.latency_us / 1e3;
  }

  const Mesh& mesh_;
  const Machine& machine_;
  const DType dtype_;
  const std::vector<int> hosts_;
  double ms_ = 0;
};

// The axes along which every shard has copies.
std::vector<int> CopyAxes(const Mesh& mesh) {
  std::vector<int> axes;
  for (const int axis : mesh.DataAxes()) {
    if (!mesh.ShardsOver(axis)) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

double FitEstimator::Bilinear::Value(double blocks, double samples) const {
  const double block = (blocks - kBlocks[0]) / (kBlocks[1] - kBlocks[0]);
  const double sample = (samples - kSamples[0]) / (kSamples[1] - kSamples[0]);
  const double first = at[0][0] + block * (at[1][0] - at[0][0]);
  const double second = at[0][1] + block * (at[1][1] - at[0][1]);
  return first + sample * (second - first);
}

std::optional<FitEstimator::Sketch> FitEstimator::MakeSketch(const PlanOptions& candidate) const {
  Sketch sketch;
  const auto part_of = [](const JobPlan& plan) {
    return Part{BytesOf(plan, MemoryCategory::kParameters),
                BytesOf(plan, MemoryCategory::kGradients),
                BytesOf(plan, MemoryCategory::kOptimizerState) * 2,
                static_cast<double>(plan.num_parameters), NumBuckets(plan)};
  };
  Part parts[2];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      const StatusOr<JobPlan> plan = PlanModel(Small(candidate, kBlocks[i], kSamples[j]));
      if (!plan.ok()) return std::nullopt;
      sketch.activations.at[i][j] = MostActivationsAndWorkspace(*plan);
      sketch.compute_ms.at[i][j] = plan->time.compute_ms + plan->time.start_ms;
      for (const AxesTraffic& along : plan->traffic_of_axes) {
        if (along.axes != "tensor") continue;
        sketch.tensor_bytes.at[i][j] += static_cast<double>(along.bytes);
        sketch.tensor_messages.at[i][j] += static_cast<double>(along.messages);
      }
      if (j == 0) parts[i] = part_of(*plan);
      sketch.largest_bucket = LargestGradientBucket(*plan);
    }
  }
  const double blocks = BlocksOf(candidate.model).empty() ? 0 : NumBlocks(candidate);
  const auto divide = [&](double Part::*bytes) {
    const double per_block = (parts[1].*bytes - parts[0].*bytes) / (kBlocks[1] - kBlocks[0]);
    sketch.blocks.*bytes = per_block * blocks;
    sketch.rest.*bytes = parts[0].*bytes - per_block * kBlocks[0];
  };
  divide(&Part::parameters);
  divide(&Part::gradients);
  divide(&Part::optimizer_state);
  divide(&Part::elements);
  divide(&Part::buckets);
  return sketch;
}

std::optional<FitEstimate> FitEstimator::Estimate(const PlanOptions& candidate) {
  const CompileOptions& compile = candidate.compile;
  const int tensor = TensorRanks(candidate);
  const auto [known, is_new] =
      sketches_.try_emplace({tensor, !compile.recompute.empty()}, std::nullopt);
  if (is_new) known->second = MakeSketch(candidate);
  if (!known->second.has_value()) return std::nullopt;
  const Sketch& sketch = *known->second;

  const Mesh mesh = compile.MeshOf(candidate.ranks);
  const std::vector<int> shard_axes = mesh.ShardAxes();
  const std::vector<int> copy_axes = CopyAxes(mesh);
  const auto shards = static_cast<double>(mesh.RanksAlong(0, shard_axes).size());
  const int secondary = mesh.FindAxis(compile.zero.secondary_axis);
  const auto micro_steps = static_cast<double>(compile.micro_batches / mesh.num_data_ranks());
  const auto blocks = static_cast<double>(NumBlocks(candidate));
  const auto samples = static_cast<double>(candidate.batch);
  const double activations = sketch.activations.Value(blocks, samples);
  const auto bucket = static_cast<double>(compile.zero.bucket_bytes);
  double resident = 0, whole_gradients = 0, in_flight = 0;
  DataLinks links(mesh, candidate.machine, compile.dtype);
  const int of_blocks =
      compile.zero.stage_rules.empty() ? compile.zero.stage : compile.zero.stage_rules[0].stage;
  for (const bool is_blocks : {false, true}) {
    const Part& part = is_blocks ? sketch.blocks : sketch.rest;
    const int stage = is_blocks ? of_blocks : compile.zero.stage;
    // Two buckets at a time, or the largest one, which is an embedding's.
    const auto moving = [&](double bytes) {
      return std::min(bytes, is_blocks ? 2 * bucket : std::max(2 * bucket, sketch.largest_bucket));
    };
    resident += part.parameters / (stage >= 3 ? shards : 1) +
                part.optimizer_state / (stage >= 1 ? shards : 1);
    if (stage >= 2) {
      resident += micro_steps > 1 ? 0 : part.gradients / shards;
      in_flight += moving(part.gradients);
    } else {
      whole_gradients += part.gradients;
    }
    if (micro_steps > 1) resident += part.elements * 4 / tensor / shards;
    links.Sum(part.gradients, mesh.DataAxes(), part.buckets, micro_steps);
    if (stage == 0 && micro_steps == 1) {  // all-reduces
      links.Gather(part.gradients, mesh.DataAxes(), part.buckets, 1);
      continue;
    }
    links.Gather(part.gradients / shards, copy_axes, part.buckets, micro_steps);
    if (stage < 3) {
      links.GatherByAxis(part.parameters, shard_axes, part.buckets, 1);
      continue;
    }
    if (is_blocks) in_flight += moving(part.parameters);  // others before their gradients
    links.GatherByAxis(part.parameters, shard_axes, part.buckets, micro_steps);
    if (secondary < 0) {
      links.GatherByAxis(part.parameters, shard_axes, part.buckets, micro_steps);
    } else {
      links.GatherByAxis(part.parameters, {secondary}, part.buckets, micro_steps);
      resident += part.parameters / mesh.axes()[secondary].size;
    }
  }
  FitEstimate estimate;
  // Without accumulators whole gradients replace activations.
  estimate.peak_bytes =
      resident + in_flight +
      (micro_steps > 1 ? activations + whole_gradients : std::max(activations, whole_gradients));
  const Machine& machine = candidate.machine;
  const auto per_step = [&](const Bilinear& value) {
    return value.Value(blocks, samples) * micro_steps;
  };
  estimate.step_ms = per_step(sketch.compute_ms) +
                     per_step(sketch.tensor_bytes) / machine.bandwidth_gb_s / 1e6 +
                     per_step(sketch.tensor_messages) * machine.latency_us / 1e3 + links.ms();
  return estimate;
}

}  // namespace zg::plan
