// Parameters whose initial values are in a file have them at every stage and on any number of ranks,
// in eager execution too, and train as if the whole model had been loaded.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/io/safetensors_writer.h"
#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 50, kChannels = 6;
constexpr int64_t kMicroBatches = 6;  // of 1, 2 and 3 ranks

struct Words : nn::Module {
  nn::Embedding vectors{this, "vectors", kRows, kChannels};
  nn::Linear head{this, "head", kChannels, 4};
  Var forward(Var ids) { return head(vectors(ids)); }
};

std::vector<float> Vectors() {
  std::vector<float> values(kRows * kChannels);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i) - 1.0f;
  return values;
}

// The vectors under another's name, and the head's bias under its own.
std::string WriteVectors() {
  const std::string path = ::testing::TempDir() + "/vectors.safetensors";
  const std::vector<float> vectors = Vectors();
  const std::vector<float> bias = {1.0f, 2.0f, 3.0f, 4.0f};
  const Status status =
      WriteSafetensors(path, {{"glove", SafetensorsDType::kF32, {kRows, kChannels}, vectors.data()},
                              {"head.bias", SafetensorsDType::kF32, {4}, bias.data()}});
  EXPECT_TRUE(status.ok()) << status.ToString();
  return path;
}

void TakeFrom(const std::string& path, Words* model) {
  model->vectors.weight.set_initializer(Initializer::FromFile(path, "glove"));
  model->head.bias->set_initializer(Initializer::FromFile(path));
}

// The parameters at the start by name, whole, and, as text, the losses of two steps and the digest
// after them.
struct Result {
  std::map<std::string, std::vector<float>> start;
  std::string after;
};

StatusOr<Result> Train(Words* model, int stage, DType dtype, Communicator& communicator) {
  Graph graph("words");
  graph.train(optim::AdamW{}, [&](Inputs& in) {
    return cross_entropy((*model)(in.i64("ids", {5})), in.i64("y", {5}));
  });
  graph.config().zero.stage = stage;
  graph.config().dtype = dtype;
  graph.config().micro_batches = kMicroBatches;
  ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
  Result result;
  ZG_ASSIGN_OR_RETURN(const NamedValues start, trainer->consolidate_parameters());
  for (const auto& [name, tensor] : start) result.start[name] = tensor.values;
  for (int step = 0; step < 2; ++step) {
    std::vector<std::vector<int64_t>> ids(kMicroBatches), y(kMicroBatches);  // read by the step
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      for (int64_t i = 0; i < 5; ++i) {
        ids[micro_batch].push_back((7 * micro_batch + 11 * i + step) % kRows);
        y[micro_batch].push_back((micro_batch + i) % 4);
      }
      return trainer->feed({{"ids", ids[micro_batch]}, {"y", y[micro_batch]}});
    }));
    result.after += fmt::format("{} ", loss);
  }
  ZG_ASSIGN_OR_RETURN(const TensorDigest digest, trainer->digest_parameters());
  result.after += digest.sha256;
  return result;
}

Result OnRanks(int ranks, const std::function<StatusOr<Result>(Communicator&)>& body) {
  const auto results =
      testing::TryOnRanks<Result>(ranks, [&](Communicator& communicator, Result* result) -> Status {
        ZG_ASSIGN_OR_RETURN(*result, body(communicator));
        return Status::Ok();
      });
  if (!results.ok()) return {{}, results.status().message()};
  return (*results)[0];
}

TEST(InitialValuesFromFile, EveryStageAndNumberOfRanks) {
  const std::string path = WriteVectors();
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::string after;
    for (const int stage : {0, 2, 3}) {
      for (const int ranks : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("stage {}, {} ranks", stage, ranks));
        const Result result = OnRanks(ranks, [&](Communicator& communicator) {
          Words model;
          TakeFrom(path, &model);
          return Train(&model, stage, dtype, communicator);
        });
        ASSERT_EQ(result.start.size(), 3u) << result.after;
        EXPECT_EQ(result.start.at("vectors.weight"), Vectors());
        EXPECT_EQ(result.start.at("head.bias"), (std::vector<float>{1.0f, 2.0f, 3.0f, 4.0f}));
        if (after.empty()) after = result.after;
        EXPECT_EQ(result.after, after);
      }
    }
  }
}

TEST(InitialValuesFromFile, Eager) {
  const std::string path = WriteVectors();
  Words model;
  TakeFrom(path, &model);
  Eager eager;
  EXPECT_EQ(Tensor(model.vectors.weight).values(), Vectors());
  EXPECT_EQ(Tensor(*model.head.bias).values(), (std::vector<float>{1.0f, 2.0f, 3.0f, 4.0f}));
}

TEST(InitialValuesFromFile, AMissingTensorIsAnErrorOnEveryRank) {
  const std::string path = WriteVectors();
  for (int rank = 0; rank < 2; ++rank) {
    std::string error;
    testing::TryOnRanks<int>(2, [&](Communicator& communicator, int*) -> Status {
      Words model;
      model.head.weight.set_initializer(Initializer::FromFile(path));
      const auto result = Train(&model, /*stage=*/3, DType::kF32, communicator);
      if (communicator.rank() == rank) error = result.status().message();
      return result.status();
    }).status();
    EXPECT_THAT(error, HasSubstr("initial values of 'head.weight': " + path +
                                 ": no tensor 'head.weight' among its 2"));
  }
}

}  // namespace
}  // namespace zg
