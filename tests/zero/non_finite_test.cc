// Steps with a loss or gradients that are not finite: on_non_finite and detect_anomaly, on
// in-process ranks, at every stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/io/checkpoint_reader.h"
#include "framework/io/safetensors_writer.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "tests/io/test_file.h"
#include "tests/testing/as_planned.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kInputs = 12;
constexpr int64_t kOutputs = 40;
constexpr int64_t kRows = 4;

// The kind of data of a step.
enum class Data {
  kGood,
  kNanInput,   // only in micro-batch 1: the loss and all gradients become NaN
  kHugeInput,  // while weights are zeros the loss is finite, but gradients overflow
  kHugeRow,    // likewise, only in the first row of the weight, which one rank holds
};

struct Config {
  int ranks = 2;
  int stage = 0;
  OnNonFinite on_non_finite = OnNonFinite::kStop;
  bool detect_anomaly = false;
  double max_grad_norm = 0;
  DType dtype = DType::kF32;
  std::vector<Data> steps = {Data::kGood, Data::kGood};
  std::string init = {};
  std::string resume = {};
  std::string save = {};
};

struct Result {
  Status status;  // of the first step that failed, or of preparing them
  std::vector<float> losses;
  int64_t num_updates = 0;
  std::string param_sha256;
  std::string optimizer_sha256;
};

struct Model : nn::Module {
  nn::Linear linear{this, "linear", kInputs, kOutputs, {true, Initializer::Zeros()}};
  Var forward(Var x) override { return linear(x); }
};

Status FeedStep(Trainer& trainer, Data data, int64_t step, int64_t micro_batch,
                std::vector<float>* x, std::vector<float>* y) {
  for (size_t i = 0; i < x->size(); ++i) {
    (*x)[i] = static_cast<float>((i + 3 * micro_batch + step) % 7) - 3.0f;
  }
  for (size_t i = 0; i < y->size(); ++i) (*y)[i] = static_cast<float>(i % 5);
  if (data == Data::kNanInput && micro_batch == 1) (*x)[3] = NAN;
  if (data >= Data::kHugeInput && micro_batch == 1) {
    std::fill(x->begin(), x->end(), 1e30f);
    std::fill(y->begin(), y->end(), data == Data::kHugeInput ? 1e15f : 0.0f);
    for (size_t i = 0; i < y->size(); i += kOutputs) (*y)[i] = 1e15f;
  }
  return trainer.feed({{"x", *x}, {"y", *y}});
}

Status TrainOn(const Config& config, Communicator& communicator, Result* result) {
  Model model;
  Graph graph("small");
  graph.train(optim::Adam{.lr = 0.01}, [&](Inputs& in) {
    return mse_loss(model(in.f32("x", {kRows, kInputs})), in.f32("y", {kRows, kOutputs}));
  });
  graph.config().enable_zero({.stage = config.stage, .bucket_bytes = 1024});
  graph.config().micro_batches = 6;
  graph.config().on_non_finite = config.on_non_finite;
  graph.config().dtype = config.dtype;
  if (config.max_grad_norm > 0) graph.config().max_grad_norm = config.max_grad_norm;
  TrainerOptions options;
  options.detect_anomaly = config.detect_anomaly;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      make_trainer(graph, communicator, options));
  if (!config.init.empty()) ZG_RETURN_IF_ERROR(trainer->load_parameters(config.init));
  if (!config.resume.empty()) ZG_RETURN_IF_ERROR(trainer->resume(config.resume));
  std::vector<float> x(kRows * kInputs);
  std::vector<float> y(kRows * kOutputs);
  Status status;
  const int64_t first_step = trainer->steps_done();
  for (size_t i = first_step; i < config.steps.size() && status.ok(); ++i) {
    const StatusOr<float> loss = trainer->step([&](int64_t micro_batch) {
      // A good step's data has its number among the good ones.
      const int64_t index = std::count(config.steps.begin(), config.steps.begin() + i, Data::kGood);
      return FeedStep(*trainer, config.steps[i], index, micro_batch, &x, &y);
    });
    status = loss.status();
    if (loss.ok()) result->losses.push_back(*loss);
  }
  // An error on one rank ends the others' collectives.
  if (!status.ok() && status.message().find("updated parameter") != std::string::npos)
    return status;
  if (!status.ok() && config.detect_anomaly) return status;
  if (status.ok()) {
    testing::ExpectMemoryAsPlanned(trainer->executor());
    testing::ExpectTrafficAsPlanned(trainer->executor(), trainer->steps_done() - first_step);
  }
  result->num_updates = trainer->num_updates();
  if (!config.save.empty()) ZG_RETURN_IF_ERROR(trainer->save(config.save));
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer->digest_optimizer_state());
  result->param_sha256 = parameters.sha256;
  result->optimizer_sha256 = state.sha256;
  result->status = status;
  return Status::Ok();
}

std::vector<Result> TrainOnAllRanks(const Config& config) {
  RegisterAllOps();
  std::vector<Result> results(config.ranks);
  (void)RunRanks(config.ranks, [&](Communicator& communicator) {
    Result* const result = &results[communicator.rank()];
    const Status status = TrainOn(config, communicator, result);
    if (!status.ok()) result->status = status;
    return status;
  });
  return results;
}

Result Train(const Config& config) { return TrainOnAllRanks(config)[0]; }

// Stage and number of ranks.
class NonFiniteTest : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static Config Here() {
    Config config;
    std::tie(config.stage, config.ranks) = GetParam();
    return config;
  }
};

TEST_P(NonFiniteTest, StopEndsOnEveryRankBeforeTheUpdate) {
  Config config = Here();
  config.steps = {Data::kGood, Data::kNanInput, Data::kGood};
  const std::vector<Result> results = TrainOnAllRanks(config);
  for (const Result& result : results) {
    EXPECT_EQ(result.status.message(),
              "step 2: the loss is nan\n"
              "  hint: `detect_anomaly` names the first node that computed an infinity or NaN; "
              "`on_non_finite=skip` leaves such updates out, ignore goes on");
    EXPECT_EQ(result.status.code(), StatusCode::kFailedPrecondition);
  }
  config.steps = {Data::kGood};
  EXPECT_EQ(results[0].param_sha256, Train(config).param_sha256);
}

TEST_P(NonFiniteTest, StopSeesAGradientThatOverflowsInAFiniteLoss) {
  Config config = Here();
  config.steps = {Data::kHugeInput, Data::kGood};
  int num_owners = 0;
  for (const Result& result : TrainOnAllRanks(config)) {
    ASSERT_FALSE(result.status.ok());
    EXPECT_TRUE(result.losses.empty());
    if (result.status.code() == StatusCode::kAborted) continue;
    ++num_owners;
    EXPECT_THAT(
        result.status.message(),
        AllOf(StartsWith("step 1, adam_update: an updated parameter is not finite: 'linear."),
              HasSubstr("is nan, with a gradient of -inf\n  hint: ")));
  }
  EXPECT_GE(num_owners, 1);
}

TEST_P(NonFiniteTest, StopWithClippingSeesTheNormOnEveryRank) {
  Config config = Here();
  config.max_grad_norm = 1;
  config.steps = {Data::kHugeInput};
  int num_blamed = 0;
  for (const Result& result : TrainOnAllRanks(config)) {
    EXPECT_THAT(result.status.message(), StartsWith("step 1: the norm of the gradients is inf: t"));
    num_blamed += result.status.message().find("that of 'linear.weight' at element 0 is -inf") !=
                  std::string::npos;
  }
  EXPECT_GE(num_blamed, 1);
}

TEST_P(NonFiniteTest, SkipGoesOnAsIfTheStepHadNotBeen) {
  Config config = Here();
  config.on_non_finite = OnNonFinite::kSkip;
  config.steps = {Data::kHugeInput, Data::kGood, Data::kNanInput, Data::kGood};
  const std::vector<Result> results = TrainOnAllRanks(config);
  for (const Result& result : results) {
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    ASSERT_EQ(result.losses.size(), 4u);
    EXPECT_TRUE(std::isfinite(result.losses[0]));
    EXPECT_TRUE(std::isnan(result.losses[2]));
  }
  EXPECT_EQ(results[0].num_updates, 2);
  config.steps = {Data::kGood, Data::kGood};
  const Result good = Train(config);
  EXPECT_EQ(results[0].param_sha256, good.param_sha256);
  EXPECT_EQ(results[0].optimizer_sha256, good.optimizer_sha256);
  EXPECT_EQ(results[0].losses[1], good.losses[0]);
  EXPECT_EQ(results[0].losses[3], good.losses[1]);
}

TEST_P(NonFiniteTest, FiniteRunsHaveTheSameBits) {
  for (const double max_grad_norm : {0.0, 0.5}) {
    Config config = Here();
    config.max_grad_norm = max_grad_norm;
    config.steps = {Data::kGood, Data::kGood, Data::kGood};
    config.on_non_finite = OnNonFinite::kIgnore;
    const Result ignore = Train(config);
    for (const OnNonFinite other : {OnNonFinite::kStop, OnNonFinite::kSkip}) {
      config.on_non_finite = other;
      const Result result = Train(config);
      EXPECT_EQ(result.param_sha256, ignore.param_sha256);
      EXPECT_EQ(result.losses, ignore.losses);
    }
  }
}

TEST_P(NonFiniteTest, IgnoreGoesOn) {
  Config config = Here();
  config.on_non_finite = OnNonFinite::kIgnore;
  config.steps = {Data::kGood, Data::kNanInput, Data::kGood};
  for (const Result& result : TrainOnAllRanks(config)) {
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    ASSERT_EQ(result.losses.size(), 3u);
    EXPECT_TRUE(std::isnan(result.losses[2]));  // so are the parameters
  }
}

TEST_P(NonFiniteTest, AnAnomalyOfOneRankIsNamed) {
  Config config = Here();
  config.detect_anomaly = true;
  config.steps = {Data::kGood, Data::kNanInput};
  const std::vector<Result> results = TrainOnAllRanks(config);
  const int owner = 1 % config.ranks;
  EXPECT_EQ(results[owner].status.message(),
            fmt::format("step 2, input: %x, f32[4,12] on this rank, is nan at element 3 (forward, "
                        "micro-batch 1, rank {}); it has no inputs",
                        owner));
  for (int rank = 0; rank < config.ranks; ++rank) {
    if (rank == owner) continue;
    EXPECT_EQ(results[rank].status.code(), StatusCode::kAborted);
  }
}

INSTANTIATE_TEST_SUITE_P(StagesAndRanks, NonFiniteTest,
                         ::testing::Combine(::testing::Values(0, 1, 2, 3),
                                            ::testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return fmt::format("Stage{}Ranks{}", std::get<0>(info.param),
                                              std::get<1>(info.param));
                         });

TEST(StopTest, AStepThatOneRankEndsIsSavedByNone) {
  Config config;
  config.stage = 3;  // the other rank would not see it before it saves
  config.steps = {Data::kHugeRow};
  config.save = TestPath("ended_by_one");
  const std::vector<Result> results = TrainOnAllRanks(config);
  EXPECT_THAT(results[0].status.message(),
              StartsWith("step 1, adam_update: an updated parameter is not finite: 'linear.weight' "
                         "at element 0 is nan, with a gradient of -inf"));
  EXPECT_EQ(results[1].status.code(), StatusCode::kAborted);
  EXPECT_EQ(results[1].losses.size(), 1u);
  EXPECT_FALSE(FindCheckpoint(config.save).ok());
}

TEST(DetectAnomalyTest, ANodeThatOverflowsIsNamedWithFiniteInputs) {
  Config config;
  config.detect_anomaly = true;
  config.on_non_finite = OnNonFinite::kIgnore;
  config.steps = {Data::kHugeInput};
  EXPECT_THAT(TrainOnAllRanks(config)[1].status.message(),
              AllOf(StartsWith("step 1, linear_grad_weight of linear: %linear.weight.grad, "
                               "f32[40,12] on this rank, is -inf at element 0 (backward, "
                               "micro-batch 1, rank 1); its inputs were finite")));
}

TEST(DetectAnomalyTest, AFiniteRunHasTheSameBits) {
  Config config;
  config.stage = 3;
  const Result plain = Train(config);
  config.detect_anomaly = true;
  const Result checked = Train(config);
  ASSERT_TRUE(checked.status.ok()) << checked.status.message();
  EXPECT_EQ(checked.param_sha256, plain.param_sha256);
  EXPECT_EQ(checked.losses, plain.losses);
}

TEST(DetectAnomalyTest, AnInitialValueIsNamed) {
  std::vector<float> weight(kOutputs * kInputs, 0.5f);
  const std::vector<float> bias(kOutputs, 0.0f);
  weight[7] = std::numeric_limits<float>::quiet_NaN();
  Config config;
  config.init = TestPath("init.safetensors");
  const Status written = WriteSafetensors(
      config.init, {{"linear.weight", SafetensorsDType::kF32, {kOutputs, kInputs}, weight.data()},
                    {"linear.bias", SafetensorsDType::kF32, {kOutputs}, bias.data()}});
  ASSERT_TRUE(written.ok()) << written.message();
  for (const Result& result : TrainOnAllRanks(config)) {
    EXPECT_THAT(result.status.message(), StartsWith("step 1: the loss is nan"));
  }
  for (const int stage : {0, 3}) {  // whole on every rank, a shard of one
    config.stage = stage;
    config.detect_anomaly = true;
    for (const Result& result : TrainOnAllRanks(config)) {
      EXPECT_THAT(result.status.message(),
                  HasSubstr("'linear.weight' is nan at element 7 before the first step"));
    }
  }
}

TEST(DetectAnomalyTest, OverflowThatTheLossScalerDealsWithIsNone) {
  Config config;
  config.dtype = DType::kF16;
  config.detect_anomaly = true;
  config.steps = std::vector<Data>(4, Data::kGood);
  const Result result = Train(config);
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST(SkipTest, MoreThan24InARowEndTheJob) {
  Config config;
  config.on_non_finite = OnNonFinite::kSkip;
  config.steps = std::vector<Data>(24, Data::kNanInput);
  EXPECT_TRUE(Train(config).status.ok());
  config.steps.push_back(Data::kNanInput);
  for (const Result& result : TrainOnAllRanks(config)) {
    EXPECT_THAT(result.status.message(),
                AllOf(StartsWith("step 25, guarded_update_control: the loss or a gradient was not "
                                 "finite in 25 steps in a row, whose updates were left out\n"),
                      Not(HasSubstr("1e"))));
  }
}

TEST(SkipTest, ResumesUnderAnotherPolicyAndBack) {
  const std::vector<Data> steps = {Data::kGood, Data::kNanInput, Data::kGood, Data::kGood};
  Config config;
  config.on_non_finite = OnNonFinite::kSkip;
  config.steps = steps;
  const Result through = Train(config);
  config.save = TestPath("skip");
  config.steps.resize(2);
  EXPECT_EQ(Train(config).num_updates, 1);
  config.resume = config.save;
  config.save = {};
  config.stage = 3;
  config.ranks = 3;
  config.steps = steps;
  const Result resumed = Train(config);
  ASSERT_TRUE(resumed.status.ok()) << resumed.status.message();
  EXPECT_EQ(resumed.num_updates, 3);
  EXPECT_EQ(resumed.param_sha256, through.param_sha256);
  EXPECT_EQ(resumed.optimizer_sha256, through.optimizer_sha256);

  config.on_non_finite = OnNonFinite::kStop;  // has no counter
  EXPECT_TRUE(Train(config).status.ok());

  config.resume = {};
  config.save = TestPath("stop");
  config.steps = {Data::kGood, Data::kGood};
  EXPECT_TRUE(Train(config).status.ok());
  config.resume = config.save;
  config.save = {};
  config.on_non_finite = OnNonFinite::kSkip;  // its counter begins at the checkpoint's updates
  config.steps = {Data::kGood, Data::kGood, Data::kGood};
  EXPECT_EQ(Train(config).num_updates, 3);
}

}  // namespace
}  // namespace zg::zero
