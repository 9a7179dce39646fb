#include "tests/zero/training.h"

#include <memory>
#include <random>

#include "framework/comm/in_process.h"
#include "framework/ir/printer.h"
#include "framework/kernels/device_kernels.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/train/measured_gemms.h"
#include "models/classifier/model.h"
#include "models/gpt/model.h"
#include "models/llama/model.h"
#include "models/recipe/model.h"
#include "tests/testing/clobber_check.h"
#include "tests/testing/metered_communicator.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {
namespace {

constexpr uint64_t kSeed = 7;

// Ranks whose program is walked word by word: a few show what a thousand would.
constexpr int kMaxRanksWalked = 4;

std::mt19937 Generator(int64_t step, int64_t micro_batch) {
  return std::mt19937(static_cast<unsigned>(1000 * step + micro_batch));
}

void FillNormal(std::mt19937& generator, std::vector<float>* values) {
  std::normal_distribution<float> normal;
  for (float& value : *values) value = normal(generator);
}

void FillBelow(std::mt19937& generator, int64_t bound, std::vector<int64_t>* values) {
  std::uniform_int_distribution<int64_t> uniform(0, bound - 1);
  for (int64_t& value : *values) value = uniform(generator);
}

// A model with its graph, and data that depends only on the step and the micro-batch.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual void Build(Graph& graph, const std::optional<optim::Optimizer>& optimizer) = 0;
  virtual void Fill(int64_t step, int64_t micro_batch) = 0;
  virtual Status Feed(Trainer& trainer) = 0;
  virtual Status Eval(Trainer& trainer) = 0;
};

class MlpWorkload : public Workload {
 public:
  void Build(Graph& graph, const std::optional<optim::Optimizer>& optimizer) override {
    graph.train(optimizer.value_or(optim::Adam{.lr = 0.01}), [&](Inputs& in) { return Loss(in); });
    graph.eval("validate", [&](Inputs& in) { return Loss(in); });
  }
  void Fill(int64_t step, int64_t micro_batch) override {
    std::mt19937 generator = Generator(step, micro_batch);
    FillNormal(generator, &x_);
    FillNormal(generator, &y_);
  }
  Status Feed(Trainer& trainer) override { return trainer.feed({{"x", x_}, {"y", y_}}); }
  Status Eval(Trainer& trainer) override {
    return trainer.eval("validate", {{"x", x_}, {"y", y_}});
  }

 private:
  Var Loss(Inputs& in) { return mse_loss(model_(in.f32("x", {6, 19})), in.f32("y", {6, 19})); }
  models::Recipe model_{4, 19};
  std::vector<float> x_ = std::vector<float>(6 * 19);
  std::vector<float> y_ = std::vector<float>(6 * 19);
};

class ClassifierWorkload : public Workload {
 public:
  void Build(Graph& graph, const std::optional<optim::Optimizer>& optimizer) override {
    graph.train(optimizer.value_or(optim::Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}),
                [&](Inputs& in) { return Loss(in); });
    graph.eval("validate", [&](Inputs& in) { return Loss(in); });
  }
  void Fill(int64_t step, int64_t micro_batch) override {
    std::mt19937 generator = Generator(step, micro_batch);
    FillNormal(generator, &x_);
    FillBelow(generator, 5, &y_);
  }
  Status Feed(Trainer& trainer) override { return trainer.feed({{"x", x_}, {"y", y_}}); }
  Status Eval(Trainer& trainer) override {
    return trainer.eval("validate", {{"x", x_}, {"y", y_}});
  }

 private:
  Var Loss(Inputs& in) { return cross_entropy(model_(in.f32("x", {4, 23})), in.i64("y", {4})); }
  models::Classifier model_{{23, 17, 5}};
  std::vector<float> x_ = std::vector<float>(4 * 23);
  std::vector<int64_t> y_ = std::vector<int64_t>(4);
};

template <typename Model>
class TextWorkload : public Workload {
 public:
  template <typename Config>
  explicit TextWorkload(const Config& config) : model_(config) {}
  void Build(Graph& graph, const std::optional<optim::Optimizer>& optimizer) override {
    graph.train(optimizer.value_or(optim::AdamW{.lr = 0.003}),
                [&](Inputs& in) { return Loss(in); });
    graph.eval("validate", [&](Inputs& in) { return Loss(in); });
  }
  void Fill(int64_t step, int64_t micro_batch) override {
    std::mt19937 generator = Generator(step, micro_batch);
    FillBelow(generator, 29, &x_);
    FillBelow(generator, 29, &y_);
  }
  Status Feed(Trainer& trainer) override { return trainer.feed({{"x", x_}, {"y", y_}}); }
  Status Eval(Trainer& trainer) override {
    return trainer.eval("validate", {{"x", x_}, {"y", y_}});
  }

 private:
  Var Loss(Inputs& in) { return cross_entropy(model_(in.i64("x", {2, 12})), in.i64("y", {2, 12})); }
  Model model_;
  std::vector<int64_t> x_ = std::vector<int64_t>(2 * 12);
  std::vector<int64_t> y_ = std::vector<int64_t>(2 * 12);
};

std::unique_ptr<Workload> MakeGpt(models::GptConfig config) {
  config.layers = 2;
  config.channels = 24;
  config.context = 12;
  config.dropout = 0.1;
  return std::make_unique<TextWorkload<models::Gpt>>(config);
}

std::unique_ptr<Workload> MakeLlama(models::LlamaConfig config) {
  config.layers = 2;
  config.context = 12;
  return std::make_unique<TextWorkload<models::Llama>>(config);
}

std::unique_ptr<Workload> MakeWorkload(TestModel model) {
  switch (model) {
    case TestModel::kMlp:
      return std::make_unique<MlpWorkload>();
    case TestModel::kClassifier:
      return std::make_unique<ClassifierWorkload>();
    case TestModel::kGpt:
      return MakeGpt({.heads = 2, .vocabulary = 29});
    case TestModel::kPaddedGpt:
      return MakeGpt({.heads = 2, .vocabulary = 29, .vocabulary_multiple = 16});
    case TestModel::kEvenGpt:
      return MakeGpt({.heads = 2, .vocabulary = 30});
    case TestModel::kFourHeadGpt:
      return MakeGpt({.heads = 4, .vocabulary = 32});
    case TestModel::kSixHeadGpt:
      return MakeGpt({.heads = 6, .vocabulary = 30});
    case TestModel::kLlama:
      return MakeLlama(
          {.heads = 4, .key_heads = 2, .channels = 24, .hidden = 40, .vocabulary = 30});
    case TestModel::kSixHeadLlama:
      return MakeLlama(
          {.heads = 6, .key_heads = 3, .channels = 24, .hidden = 42, .vocabulary = 30});
    case TestModel::kEightHeadLlama:
      return MakeLlama(
          {.heads = 8, .key_heads = 4, .channels = 48, .hidden = 40, .vocabulary = 32});
  }
  return nullptr;
}

struct Digests {
  TensorDigest parameters;
  TensorDigest optimizer_state;
};

StatusOr<Digests> DigestsOf(Trainer& trainer) {
  Digests digests;
  ZG_ASSIGN_OR_RETURN(digests.parameters, trainer.digest_parameters());
  ZG_ASSIGN_OR_RETURN(digests.optimizer_state, trainer.digest_optimizer_state());
  return digests;
}

// `received`: what the communicator's groups count, or null.
Status TrainOnRank(const RunConfig& config, Communicator& communicator,
                   const BytesByGroup* received, RunResult* result) {
  std::unique_ptr<Workload> workload = MakeWorkload(config.model);
  Graph graph("test");
  workload->Build(graph, config.optimizer);
  for (const optim::ParameterGroup& group : config.groups) graph.add_parameter_group(group);
  graph.config().mesh = config.mesh;
  graph.config().placement = config.placement;
  graph.config().enable_zero({.stage = config.stage,
                              .stage_rules = config.stage_rules,
                              .bucket_bytes = config.bucket_bytes,
                              .shard_min_elements = config.shard_min_elements,
                              .partition = config.partition,
                              .secondary_axis = config.secondary_axis});
  graph.config().micro_batches = config.micro_batches;
  graph.config().dtype = config.dtype;
  if (!config.f32_modules.empty()) graph.config().f32_modules.push_back(config.f32_modules);
  graph.config().reduce_every = config.reduce_every;
  if (!config.recompute.empty()) graph.config().recompute.push_back(config.recompute);
  if (config.max_grad_norm > 0) graph.config().max_grad_norm = config.max_grad_norm;
  graph.config().update_early = config.update_early;
  graph.config().overlap_bytes = config.overlap_bytes;
  TrainerOptions options;
  options.seed = kSeed;
  options.kernels = config.kernels;
  // A test's own kernels are the CPU's behind a queue.
  if (config.kernels != nullptr) options.arithmetic = ArithmeticOf(CpuDevice(), config.dtype);
  options.record = config.record;
  options.tf32 = config.tf32;
  if (!config.gemm_choices.empty()) {
    const bool has_file = communicator.rank() == 0;
    ZG_ASSIGN_OR_RETURN(
        options.measured_gemms,
        MeasuredGemms::Open(has_file ? config.gemm_choices : config.gemm_choices + "/of no rank",
                            *config.kernels, communicator));
  }
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator, options));
  if (!config.resume.empty()) {
    ZG_RETURN_IF_ERROR(trainer->resume(config.resume));
    ZG_ASSIGN_OR_RETURN(const Digests digests, DigestsOf(*trainer));
    result->resumed_param_sha256 = digests.parameters.sha256;
    result->resumed_optimizer_sha256 = digests.optimizer_state.sha256;
  }
  const BytesByGroup before_steps = received == nullptr ? BytesByGroup() : *received;
  for (int64_t step = trainer->steps_done() + 1; step <= config.steps; ++step) {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      workload->Fill(step, micro_batch);
      return workload->Feed(*trainer);
    }));
    result->losses.push_back(loss);
    if (trainer->grad_norm()) result->grad_norms.push_back(*trainer->grad_norm());
  }
  if (received != nullptr) {
    result->traffic_by_axes =
        TrafficByAxes(trainer->executor().graph(), communicator.rank(), before_steps, *received);
  }
  if (!config.save.empty()) {
    ZG_RETURN_IF_ERROR(trainer->save(config.save, config.save_options));
  }
  ZG_ASSIGN_OR_RETURN(result->measured_traffic, trainer->step_traffic());
  workload->Fill(0, trainer->data_rank());
  ZG_RETURN_IF_ERROR(workload->Eval(*trainer));
  ZG_ASSIGN_OR_RETURN(const std::vector<float> eval_loss, trainer->result("validate"));
  result->eval_loss = eval_loss[0];
  ZG_ASSIGN_OR_RETURN(const Digests digests, DigestsOf(*trainer));
  result->param_sha256 = digests.parameters.sha256;
  result->param_sum = digests.parameters.sum;
  result->optimizer_sha256 = digests.optimizer_state.sha256;
  const Executor& executor = trainer->executor();
  if (communicator.rank() < kMaxRanksWalked) {
    ZG_RETURN_IF_ERROR(
        CheckNothingIsClobbered(executor.graph(), executor.plan(), communicator.rank()));
  }
  result->predicted = executor.plan().category_bytes;
  result->predicted_peak = executor.plan().arena_bytes;
  result->lower_bound = executor.plan().lower_bound_bytes;
  result->measured = executor.meter().category_bytes();
  result->measured_peak = executor.meter().peak_bytes();
  result->predicted_traffic = PredictTraffic(executor.graph());
  result->ir = Print(executor.graph());
  result->arithmetic = trainer->arithmetic();
  return Status::Ok();
}

}  // namespace

bool IsLlama(TestModel model) {
  return model == TestModel::kLlama || model == TestModel::kSixHeadLlama ||
         model == TestModel::kEightHeadLlama;
}

StatusOr<std::vector<RunResult>> TrainOnAllRanks(const RunConfig& config) {
  RegisterAllOps();
  std::vector<RunResult> results(config.ranks);
  // A meter knows no threads, beside which collectives overlap.
  const bool is_metered = config.mesh.size() > 1 && config.overlap_bytes == 0;
  ZG_RETURN_IF_ERROR(RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    RunResult* const result = &results[communicator.rank()];
    if (config.connect_device != nullptr) {
      ZG_ASSIGN_OR_RETURN(DeviceRank rank, config.connect_device(communicator));
      return TrainOnRank(config, *rank.communicator, nullptr, result);
    }
    if (!is_metered) return TrainOnRank(config, communicator, nullptr, result);
    BytesByGroup received;
    MeteredCommunicator metered(&communicator, &received);
    return TrainOnRank(config, metered, &received, result);
  }));
  for (const RunResult& result : results) {
    ZG_CHECK(result.losses == results[0].losses, "ranks report different losses");
    ZG_CHECK(result.grad_norms == results[0].grad_norms, "ranks report different norms");
  }
  return results;
}

StatusOr<RunResult> Train(const RunConfig& config) {
  ZG_ASSIGN_OR_RETURN(std::vector<RunResult> results, TrainOnAllRanks(config));
  return std::move(results[0]);
}

}  // namespace zg::testing
