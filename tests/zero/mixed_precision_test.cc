// Training in 16 bits, except the bits at every stage (stages_test): initial values, and steps
// whose gradients are too large for f16.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/io/safetensors_writer.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/tensor/half.h"
#include "models/recipe/model.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kDepth = 3;
constexpr int64_t kWidth = 19;
constexpr int64_t kMicroBatches = 6;
constexpr int64_t kBatch = 4;

struct Job {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF16;
  std::string init_path = {};
};

// One rank of a job: a model of a few layers, with Adam.
class Rank {
 public:
  static StatusOr<std::unique_ptr<Rank>> Start(const Job& job, Communicator& communicator) {
    std::unique_ptr<Rank> rank(new Rank());
    Graph& graph = rank->graph_;
    graph.train(optim::Adam{.lr = 0.01}, [&model = rank->model_](Inputs& in) {
      return mse_loss(model(in.f32("x", {kBatch, kWidth})), in.f32("y", {kBatch, kWidth}));
    });
    graph.config().enable_zero({.stage = job.stage, .bucket_bytes = 1024});
    graph.config().micro_batches = kMicroBatches;
    graph.config().dtype = job.dtype;
    TrainerOptions options;
    options.seed = 7;
    ZG_ASSIGN_OR_RETURN(rank->trainer_, make_trainer(graph, communicator, options));
    if (!job.init_path.empty()) {
      ZG_RETURN_IF_ERROR(rank->trainer_->load_parameters(job.init_path));
    }
    return rank;
  }

  // In micro-batch `overflowing` the targets are so far away that the gradients exceed f16.
  StatusOr<float> Step(int64_t overflowing = -1) {
    return trainer_->step([&](int64_t micro_batch) {
      std::mt19937 random(static_cast<unsigned>(1000 * trainer_->steps_done() + micro_batch));
      std::normal_distribution<float> normal;
      for (float& value : x_) value = normal(random);
      const float factor = micro_batch == overflowing ? 1e15f : 1.0f;
      for (float& value : y_) value = factor * normal(random);
      return trainer_->feed({{"x", x_}, {"y", y_}});
    });
  }

  Trainer& trainer() { return *trainer_; }

  // The bytes of every stored tensor's part on this rank.
  std::map<std::string, std::string> StoredBytes() {
    std::map<std::string, std::string> bytes;
    for (const ir::StoredTensor& tensor : trainer_->executor().graph().tensors()) {
      const LocalPart part = trainer_->executor().LocalPartOf(tensor).value();
      bytes[tensor.name].assign(reinterpret_cast<const char*>(part.data),
                                part.count * SizeOf(tensor.type.dtype));
    }
    return bytes;
  }

 private:
  Rank() : graph_("test") {}

  models::Recipe model_{kDepth, kWidth};
  Graph graph_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<float> x_ = std::vector<float>(kBatch * kWidth);
  std::vector<float> y_ = std::vector<float>(kBatch * kWidth);
};

// Runs `main` on every rank of the job.
Status RunJob(const Job& job, const std::function<Status(Rank&)>& main) {
  RegisterAllOps();
  return RunRanks(job.ranks, [&](Communicator& communicator) -> Status {
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Rank> rank, Rank::Start(job, communicator));
    return main(*rank);
  });
}

void ForEachStageAndNumberOfRanks(const std::function<void(Job)>& test) {
  for (const int ranks : {1, 2, 3}) {
    for (const int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      Job job;
      job.ranks = ranks;
      job.stage = stage;
      test(job);
    }
  }
}

using State = std::vector<float>;

State LossScalerOf(Rank& rank) {
  const std::string bytes = rank.StoredBytes()["loss_scaler"];
  State state(bytes.size() / sizeof(float));
  std::memcpy(state.data(), bytes.data(), bytes.size());
  return state;
}

Status ExpectState(const char* when, const State& got, const State& want) {
  if (got == want) return Status::Ok();
  return InvalidArgument("{}: the loss scaler is [{}], expected [{}]", when, fmt::join(got, ", "),
                         fmt::join(want, ", "));
}

TEST(LossScalingTest, AStepThatOverflowsChangesNothingButTheScale) {
  std::string param_sha256, optimizer_sha256;
  std::vector<float> losses;
  ForEachStageAndNumberOfRanks([&](const Job& job) {
    std::vector<std::string> digests(2);
    std::vector<float> got_losses;
    const Status status = RunJob(job, [&](Rank& rank) -> Status {
      std::vector<float> all;
      ZG_ASSIGN_OR_RETURN(all.emplace_back(), rank.Step());
      ZG_RETURN_IF_ERROR(ExpectState("after step 1", LossScalerOf(rank), {0, 1, 1, 0}));
      std::map<std::string, std::string> before = rank.StoredBytes();
      // One micro-batch is enough, although it is on one rank.
      ZG_ASSIGN_OR_RETURN(all.emplace_back(), rank.Step(/*overflowing=*/4));
      ZG_RETURN_IF_ERROR(ExpectState("after step 2", LossScalerOf(rank), {-1, 0, 1, 1}));
      std::map<std::string, std::string> after = rank.StoredBytes();
      before.erase("loss_scaler");
      after.erase("loss_scaler");
      for (const auto& [name, bytes] : before) {
        if (after[name] != bytes) return InvalidArgument("step 2 changed {}", name);
      }
      ZG_ASSIGN_OR_RETURN(all.emplace_back(), rank.Step());
      ZG_RETURN_IF_ERROR(ExpectState("after step 3", LossScalerOf(rank), {-1, 1, 2, 0}));
      if (rank.StoredBytes() == after) return InvalidArgument("step 3 changed nothing");
      ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, rank.trainer().digest_parameters());
      ZG_ASSIGN_OR_RETURN(const TensorDigest optimizer, rank.trainer().digest_optimizer_state());
      if (rank.trainer().executor().communicator().rank() == 0) {
        digests = {parameters.sha256, optimizer.sha256};
        got_losses = all;
      }
      return Status::Ok();
    });
    ASSERT_TRUE(status.ok()) << status.ToString();
    if (param_sha256.empty()) {
      param_sha256 = digests[0];
      optimizer_sha256 = digests[1];
      losses = got_losses;
    }
    EXPECT_EQ(digests[0], param_sha256);
    EXPECT_EQ(digests[1], optimizer_sha256);
    EXPECT_EQ(got_losses, losses);
  });
}

TEST(LossScalingTest, TrainingStopsWhenEveryStepOverflows) {
  ForEachStageAndNumberOfRanks([](const Job& job) {
    const Status status = RunJob(job, [](Rank& rank) -> Status {
      for (int step = 1; step <= 24; ++step) {
        const StatusOr<float> loss = rank.Step(/*overflowing=*/0);
        if (!loss.ok()) return loss.status().WithContext(fmt::format("too early: {}", step));
      }
      return rank.Step(/*overflowing=*/0).status();
    });
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("the gradients were not finite in 25 steps in a row, down to a "
                                    "loss scale of 2^-8\n  hint: lower the learning rate, clip "
                                    "gradients, or compute in bf16 or f32"),
              std::string::npos)
        << status.ToString();
  });
}

// Values that bf16 rounds.
std::map<std::string, std::vector<float>> InitialValues() {
  std::map<std::string, std::vector<float>> values;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int64_t layer = 0; layer < kDepth; ++layer) {
    const std::string name = fmt::format("layers.{}.", layer);
    values[name + "weight"].resize(kWidth * kWidth);
    values[name + "bias"].resize(kWidth);
  }
  for (auto& [name, numbers] : values) {
    for (float& number : numbers) number = normal(random);
  }
  return values;
}

std::string WriteInitialValues(const std::map<std::string, std::vector<float>>& values) {
  const std::string path = testing::TempDir() + "/mixed_precision_init.safetensors";
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, numbers] : values) {
    std::vector<int64_t> shape = {kWidth};
    if (static_cast<int64_t>(numbers.size()) > kWidth) shape.push_back(kWidth);
    tensors.push_back({name, SafetensorsDType::kF32, shape, numbers.data()});
  }
  const Status status = WriteSafetensors(path, tensors);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return path;
}

// Every 16-bit copy holds the rounded values, on the rank's part.
template <typename T>
Status CheckCopies(Rank& rank, const std::map<std::string, std::vector<float>>& values) {
  size_t num_copies = 0;
  for (const ir::StoredTensor& tensor : rank.trainer().executor().graph().tensors()) {
    if (tensor.copy_of.empty()) continue;
    ++num_copies;
    const LocalPart part = rank.trainer().executor().LocalPartOf(tensor).value();
    for (int64_t i = 0; i < part.count; ++i) {
      T copy;
      std::memcpy(&copy, part.data + i * sizeof(T), sizeof(T));
      if (copy.bits != FromF32<T>(values.at(tensor.copy_of)[part.begin + i]).bits) {
        return InvalidArgument("{}: element {} is not the rounded one", tensor.name, i);
      }
    }
  }
  if (num_copies == values.size()) return Status::Ok();
  return InvalidArgument("{} copies of {} parameters", num_copies, values.size());
}

StatusOr<std::string> DigestOf(const Job& job, const std::function<Status(Rank&)>& check) {
  std::string sha256;
  ZG_RETURN_IF_ERROR(RunJob(job, [&](Rank& rank) -> Status {
    ZG_RETURN_IF_ERROR(check(rank));
    ZG_ASSIGN_OR_RETURN(const TensorDigest digest, rank.trainer().digest_parameters());
    if (rank.trainer().executor().communicator().rank() == 0) sha256 = digest.sha256;
    return Status::Ok();
  }));
  return sha256;
}

TEST(MixedPrecisionTest, MastersHaveTheInitialValuesAndCopiesTheRoundedOnes) {
  const auto values = InitialValues();
  const std::string path = WriteInitialValues(values);
  for (const std::string& init_path : {path, std::string()}) {
    Job f32;
    f32.dtype = DType::kF32;
    f32.init_path = init_path;
    const StatusOr<std::string> expected = DigestOf(f32, [](Rank&) { return Status::Ok(); });
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    ForEachStageAndNumberOfRanks([&](Job job) {
      for (const DType dtype : {DType::kBF16, DType::kF16}) {
        SCOPED_TRACE(DTypeName(dtype));
        job.dtype = dtype;
        job.init_path = init_path;
        const StatusOr<std::string> digest = DigestOf(job, [&](Rank& rank) -> Status {
          if (init_path.empty()) return Status::Ok();
          return dtype == DType::kBF16 ? CheckCopies<BFloat16>(rank, values)
                                       : CheckCopies<Float16>(rank, values);
        });
        ASSERT_TRUE(digest.ok()) << digest.status().ToString();
        EXPECT_EQ(*digest, *expected);
      }
    });
  }
}

}  // namespace
}  // namespace zg
