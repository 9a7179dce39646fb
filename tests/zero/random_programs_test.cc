// Random models (tests/testing/random_graph.h), compiled by the whole pipeline with random options and
// run by the executor on in-process ranks: the same bits at every stage and mixture of stages and on 1,
// 2, 3 and 6 ranks, along one axis or two, memory and traffic as planned, nothing clobbered. Every
// fourth model has twice as many ranks, in pairs that share micro-batches and parameters; some of
// these have fixed parts, and run without the second rank of each pair as well.
//
//   ZG_RANDOM_PROGRAMS=1000       another number of models than 40
//   ZG_RANDOM_PROGRAMS_SEED=7     this one only
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "framework/base/random.h"
#include "framework/comm/in_process.h"
#include "framework/kernels/device_kernels.h"
#include "framework/nn/optimizers.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/placement_rule.h"
#include "framework/runtime/plan_program.h"
#include "framework/train/trainer.h"
#include "tests/testing/as_planned.h"
#include "tests/testing/clobber_check.h"
#include "tests/testing/random_choice.h"
#include "tests/testing/random_graph.h"
#include "zero/compile.h"

namespace zg::testing {
namespace {

constexpr int kMicroBatches = 6;
constexpr int kSteps = 2;

int Environment(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

struct Settings {
  CompileOptions options;
  optim::Optimizer optimizer;
};

Settings RandomSettings(unsigned seed) {
  Random random(seed ^ 0x2545f491);
  Settings settings;
  CompileOptions& options = settings.options;
  options.micro_batches = kMicroBatches;
  options.dtype = random.Pick<DType>({DType::kF32, DType::kF32, DType::kBF16, DType::kF16});
  options.zero.bucket_bytes = random.Pick<int64_t>({64, 512, 4096});
  options.zero.shard_min_elements = random.Pick<int64_t>({0, 0, 20});
  options.zero.partition =
      random.Pick<Partition>({Partition::kEven, Partition::kGreedy, Partition::kBalanced});
  options.zero.min_elements_per_shard = random.Pick<int64_t>({0, 0, 8});
  if (random.Percent(40)) options.recompute = {random.Percent(50) ? "blocks.*" : "blocks.0"};
  if (random.Percent(30)) options.max_grad_norm = 0.5;
  options.overlap_bytes = random.Pick<int64_t>({0, 0, 3000, CompileOptions::kUnlimitedBytes});
  options.on_non_finite = random.Percent(50) ? OnNonFinite::kSkip : OnNonFinite::kIgnore;
  if (options.dtype != DType::kF32 && random.Percent(30)) options.f32_modules = {"blocks.0"};
  settings.optimizer = random.Pick<optim::Optimizer>(
      {optim::Sgd{.lr = 0.05, .momentum = 0.9}, optim::AdamW{.lr = 0.05}, optim::Lamb{.lr = 0.05},
       optim::Adafactor{.lr = 0.05}, optim::Lion{.lr = 0.05}, optim::RmsProp{.lr = 0.05},
       optim::Adagrad{.lr = 0.05}, optim::Muon{.lr = 0.05}, optim::AdamW8bit{.lr = 0.05},
       optim::ScheduleFreeAdamW{.lr = 0.05},
       optim::with_ema(optim::rule_of(optim::AdamW{.lr = 0.05}), 0.9)});
  return settings;
}

// Input data of a rank: a function of the input's name, the step and the micro-batch, or only of
// the step if all ranks read the same.
std::vector<char> Data(const ir::Node& input, const TensorType& type, int64_t step,
                       int64_t micro_batch) {
  const bool is_same = input.attributes.Sbp("placement").is_broadcast();
  const RandomKey key =
      FoldIn(FoldIn(RandomKey{static_cast<uint64_t>(step)}, input.attributes.String("name")),
             static_cast<uint64_t>(is_same ? 0 : micro_batch));
  std::vector<char> bytes(type.bytes());
  for (int64_t i = 0; i < type.shape.num_elements(); ++i) {
    const float uniform = UniformAt(key, i);
    if (type.dtype == DType::kF32) {
      const float value = 2 * uniform - 1;
      std::memcpy(bytes.data() + i * 4, &value, 4);
    } else if (type.dtype == DType::kI64) {
      const auto value = static_cast<int64_t>(3 * uniform);  // of every vocabulary here
      std::memcpy(bytes.data() + i * 8, &value, 8);
    } else {
      bytes[i] = uniform < 0.5f ? 1 : 0;
    }
  }
  return bytes;
}

// Feeds the inputs of a section. The data has to stay until the section has run.
class Feeder {
 public:
  explicit Feeder(Trainer* trainer) : trainer_(*trainer) {}

  Status Feed(const ir::Section& section, int64_t step, int64_t micro_batch) {
    for (const ir::Node* node : section.nodes) {
      if (node->op->traits.kind != ir::OpKind::kInput) continue;
      const TensorType type = trainer_.program().graph.LocalType(*node->outputs[0]);
      std::vector<char>& data = fed_[node];
      data = Data(*node, type, step, micro_batch);
      ZG_RETURN_IF_ERROR(trainer_.executor().SetInput(section.name, node->attributes.String("name"),
                                                      type.dtype, data.data(),
                                                      static_cast<int64_t>(data.size())));
    }
    return Status::Ok();
  }

 private:
  Trainer& trainer_;
  std::map<const ir::Node*, std::vector<char>> fed_;
};

// A result of an eval program.
struct Result {
  Shape shape;             // over all ranks
  std::vector<float> own;  // of this one
};

// Whether the ranks' micro-batches are one after the other in it: not if they are along another dim
// than the first.
bool HasRowsOfRanks(const Shape& shape, const Shape& of_one, int num_ranks) {
  if (shape.num_dims() == 0) return false;
  Shape expected = of_one;
  expected.set_dim(0, num_ranks * of_one.dim(0));
  return shape == expected;
}

// The final state of rank 0.
struct Outcome {
  std::vector<float> losses;
  std::string parameters;
  std::string optimizer_state;
  std::map<std::string, Result> evals;
};

// How a model is trained.
struct Run {
  unsigned seed = 1;                           // of the model and the settings
  std::vector<MeshAxis> data = {{"data", 1}};  // ranks that compute different micro-batches
  int tensor_ranks = 1;                        // that share each; 1: fixed parts, if there are any
  int stage = 0;
  std::string resume = {};  // a checkpoint of the first step to resume from
  std::string save = {};    // a directory to save one into

  int num_data_ranks() const { return Mesh(data).num_ranks(); }
};

// The ranks that share parts of a model.
enum class Sharing { kNone, kPairs, kFixedParts };

Sharing SharingOf(unsigned seed) {
  if (seed % 4 != 0) return Sharing::kNone;
  return seed % 8 == 0 ? Sharing::kFixedParts : Sharing::kPairs;
}

StatusOr<Outcome> TrainOnRank(Program program, Communicator& communicator, const Run& run) {
  SCOPED_TRACE(fmt::format("seed {}, rank {} of {}, stage {}", run.seed, communicator.rank(),
                           communicator.size(), run.stage));
  TrainerOptions options;
  options.seed = run.seed;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      Trainer::create(std::move(program), communicator, options));
  const ir::Graph& graph = trainer->program().graph;
  const ir::Section& forward = *graph.section(ir::SectionKind::kForward);
  Feeder feeder(trainer.get());
  Outcome outcome;
  if (!run.resume.empty()) ZG_RETURN_IF_ERROR(trainer->resume(run.resume));
  for (int64_t step = trainer->steps_done() + 1; step <= kSteps; ++step) {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      return feeder.Feed(forward, step, micro_batch);
    }));
    outcome.losses.push_back(loss);
    if (step == 1 && !run.save.empty()) ZG_RETURN_IF_ERROR(trainer->save(run.save));
  }
  ZG_ASSIGN_OR_RETURN(const TrafficCounters traffic, trainer->step_traffic());
  // The last rank may have a smaller part of a sum.
  const auto num_steps = static_cast<int64_t>(outcome.losses.size());
  if (communicator.rank() == 0) ExpectTraffic(trainer->program().traffic, num_steps, traffic);
  ZG_RETURN_IF_ERROR(
      CheckNothingIsClobbered(graph, trainer->program().memory, communicator.rank()));
  for (const auto& section : graph.sections()) {
    if (section->kind != ir::SectionKind::kEval) continue;
    ZG_RETURN_IF_ERROR(feeder.Feed(*section, 0, trainer->data_rank()));
    ZG_RETURN_IF_ERROR(trainer->executor().RunEval(section->name));
    for (const ir::Node* node : section->nodes) {
      if (node->op->traits.kind != ir::OpKind::kOutput) continue;
      const std::string& name = node->attributes.String("name");
      Result& result = outcome.evals[section->name + " " + name];
      result.shape = node->inputs[0]->type.shape;
      ZG_ASSIGN_OR_RETURN(result.own, trainer->local_result(section->name, name));
    }
  }
  // Not all parameters of these models are read.
  CategoryBytes measured = trainer->executor().meter().category_bytes();
  const CategoryBytes& planned = trainer->program().memory.category_bytes;
  const auto parameters_of = static_cast<int>(MemoryCategory::kParameters);
  EXPECT_LE(measured[parameters_of], planned[parameters_of]);
  measured[parameters_of] = planned[parameters_of];
  EXPECT_EQ(measured, planned);
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer->digest_optimizer_state());
  outcome.parameters = parameters.sha256;
  outcome.optimizer_state = state.sha256;
  return outcome;
}

// Other stages for some parameters, none of which change a bit.
std::vector<StageRule> RandomStages(const ir::Graph& model, const Run& run) {
  std::vector<StageRule> rules;
  Random random(run.seed ^ static_cast<unsigned>(run.stage * 977 + run.num_data_ranks()));
  const bool mixes = run.stage > 0 && random.Percent(30);
  for (const ir::Node* variable : model.section(ir::SectionKind::kVariables)->nodes) {
    const bool is_parameter = ir::RoleOf(*variable->outputs[0]) == Role::kParameter;
    if (mixes && is_parameter && random.Percent(30)) {
      rules.push_back({variable->outputs[0]->name, random.Below(4)});
    }
  }
  return rules;
}

// Muon is for matrices.
std::vector<optim::ParameterGroup> GroupsOf(const ir::Graph& model, const Settings& settings) {
  std::string others;
  for (const ir::Node* variable : model.section(ir::SectionKind::kVariables)->nodes) {
    const ir::Value& value = *variable->outputs[0];
    if (!ir::IsTrainableParameter(value) || value.type.shape.num_dims() <= 2) continue;
    others += (others.empty() ? "" : ",") + value.name;
  }
  if (others.empty() || !std::holds_alternative<optim::Muon>(settings.optimizer)) return {};
  return {{"others", others, optim::AdamW{.lr = 0.05}}};
}

// Null: the rules for the axis "tensor" cannot be followed, or modules in f32 and others share a
// cache.
StatusOr<std::optional<Outcome>> TrainModel(const Run& run) {
  const Sharing sharing = SharingOf(run.seed);
  RandomModelOptions of_model;
  of_model.seed = run.seed;
  of_model.num_ranks = run.num_data_ranks();
  of_model.percent_frozen = run.seed % 2 == 0 ? 30 : 0;
  of_model.tensor_ranks = sharing == Sharing::kNone ? 1 : 2;
  Settings settings = RandomSettings(run.seed);
  ir::Graph model = MakeRandomModel(of_model);
  std::vector<MeshAxis> axes = run.data;
  if (sharing == Sharing::kPairs) axes.push_back({"tensor", 2});
  if (sharing == Sharing::kFixedParts) axes.push_back({"tensor", run.tensor_ranks, 2});
  model.set_mesh(Mesh(axes));
  if (sharing == Sharing::kFixedParts) {  // added in f32
    settings.options.dtype = DType::kF32;
    settings.options.f32_modules.clear();
  }
  settings.options.zero.stage = run.stage;
  settings.options.zero.stage_rules = RandomStages(model, run);
  if (run.data.size() > 1 && run.data[0].name == "data" && run.stage == 3) {
    settings.options.zero.secondary_axis = run.data[1].name;
  }
  for (const std::string& rule : MakeRandomRules(model, of_model.tensor_ranks, run.seed)) {
    if (of_model.tensor_ranks == 1) break;
    ZG_ASSIGN_OR_RETURN(const std::vector<PlacementRule> parsed, ParsePlacementRules(rule));
    settings.options.placement.push_back(parsed[0]);
  }
  ZG_ASSIGN_OR_RETURN(const optim::UpdateRules rules,
                      optim::MakeUpdateRules(settings.optimizer, GroupsOf(model, settings)));
  const bool may_be_refused = of_model.tensor_ranks > 1 || !settings.options.f32_modules.empty();
  std::optional<Outcome> of_main;
  ZG_RETURN_IF_ERROR(RunRanks(model.mesh().num_ranks(), [&](Communicator& communicator) -> Status {
    Program program;
    ZG_ASSIGN_OR_RETURN(program.options, settings.options.Resolve(run.num_data_ranks()));
    program.graph = model.Clone();
    program.graph.set_micro_batches(kMicroBatches);
    ZG_ASSIGN_OR_RETURN(const KernelRegistry* const kernels,
                        DeviceKernels(communicator.device(), {}));
    const Target target = TargetOf(*kernels, communicator.arena().workspace_bytes());
    const Status compiled = zero::CompileTraced(rules, target, &program);
    if (!compiled.ok() && may_be_refused) return Status::Ok();
    ZG_RETURN_IF_ERROR(compiled);
    ZG_ASSIGN_OR_RETURN(Outcome outcome, TrainOnRank(std::move(program), communicator, run));
    if (communicator.rank() == 0) of_main = std::move(outcome);
    return Status::Ok();
  }));
  return of_main;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void ExpectSame(const Outcome& expected, const Outcome& got, const Run& run) {
  const auto of_resumed = static_cast<int64_t>(expected.losses.size() - got.losses.size());
  EXPECT_TRUE(SameBits(got.losses, {expected.losses.begin() + of_resumed, expected.losses.end()}));
  EXPECT_EQ(got.parameters, expected.parameters);
  EXPECT_EQ(got.optimizer_state, expected.optimizer_state);
  for (const auto& [name, of_one] : expected.evals) {
    const Result& result = got.evals.at(name);
    if (!HasRowsOfRanks(result.shape, of_one.shape, run.num_data_ranks())) continue;
    // Where one rank computes all parts, its own result may be more than a rank's in a pair.
    const bool is_larger = result.own.size() > of_one.own.size();
    if (is_larger && SharingOf(run.seed) == Sharing::kFixedParts && run.tensor_ranks == 1) continue;
    EXPECT_TRUE(SameBits(result.own, of_one.own)) << name;
  }
}

// At every stage on 1, 2, 3 and 6 ranks: every second run saves a checkpoint, and the next one, at
// another stage on another number of ranks, resumes from it. Returns false if the rules cannot be
// followed.
bool CheckModel(unsigned seed) {
  Run first = {seed};
  first.tensor_ranks = 2;
  const StatusOr<std::optional<Outcome>> expected = TrainModel(first);
  EXPECT_TRUE(expected.ok()) << expected.status().message();
  if (!expected.ok() || !expected->has_value()) return false;
  bool sums_parts = SharingOf(seed) == Sharing::kFixedParts;
  if (sums_parts) {  // some ops cannot sum several parts of a rank, each by itself
    const StatusOr<std::optional<Outcome>> of_all_parts = TrainModel({seed});
    EXPECT_TRUE(of_all_parts.ok()) << of_all_parts.status().message();
    sums_parts = of_all_parts.ok() && of_all_parts->has_value();
  }
  const std::string checkpoint = ::testing::TempDir() + "/random_programs";
  const std::vector<std::vector<MeshAxis>> meshes = {
      {{"data", 1}},
      {{"data", 2}},
      {{"data", 3}},
      seed % 2 == 0 ? std::vector<MeshAxis>{{"replica", 2}, {"shard", 3}}
                    : std::vector<MeshAxis>{{"data", 3}, {"shard", 2}}};
  for (int i = 0; i < 12 && !::testing::Test::HasFailure(); ++i) {
    Run run = {seed, meshes[i == 5 || i == 10 ? 3 : i % 3]};
    run.tensor_ranks = sums_parts ? 1 + i % 2 : 2;
    run.stage = i == 10 ? 3 : i % 4;
    (i % 2 == 0 ? run.save : run.resume) = checkpoint;
    if (i % 2 == 0) std::filesystem::remove_all(checkpoint);
    SCOPED_TRACE(fmt::format("{}, stage {}{}", Mesh(run.data).ToString(), run.stage,
                             run.resume.empty() ? "" : ", resumed"));
    const StatusOr<std::optional<Outcome>> got = TrainModel(run);
    EXPECT_TRUE(got.ok()) << got.status().message();
    if (!got.ok()) return true;
    EXPECT_TRUE(got->has_value()) << "refused, unlike stage 0 on one rank";
    if (got->has_value()) ExpectSame(**expected, **got, run);
  }
  return true;
}

TEST(RandomPrograms, HaveTheSameBitsAtEveryStageAndOnEveryNumberOfRanks) {
  RegisterAllOps();
  const int only = Environment("ZG_RANDOM_PROGRAMS_SEED", 0);
  const int last = only > 0 ? only : Environment("ZG_RANDOM_PROGRAMS", 40);
  int num_refused = 0;
  for (int seed = only > 0 ? only : 1; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    num_refused += CheckModel(static_cast<unsigned>(seed)) ? 0 : 1;
  }
  EXPECT_LE(num_refused, only > 0 ? 1 : last / 5)
      << "of those that share parameters hardly any is run";
  fmt::print("{} of {} models refused\n", num_refused, last);
}

}  // namespace
}  // namespace zg::testing
