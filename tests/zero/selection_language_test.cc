// A model that compares, masks, picks, draws and ranks: conditions, indices and random values
// belong to a micro-batch, whichever rank computes it, so results are the same at any stage and on
// any number of ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kTime = 4;
constexpr int64_t kWidth = 8;
constexpr int64_t kClasses = 5;
constexpr int kMicroBatches = 6;  // of 1, 2 and 3 ranks

struct Model : nn::Module {
  // (B, T) ids and their mask -> (B, T, V): attention to earlier tokens, the strongest two channels
  // of each position, gates.
  Var forward(Var ids, Var is_word) {
    Var h = embedding(ids, table) + index_select(position, 0, arange(kTime, kTime - 1, -1));
    if (nn::is_training()) h = h + normal(h) * 0.1;
    const Var sees = (unsqueeze(arange(kTime), 1) >= arange(kTime)) & unsqueeze(is_word, 1);
    const Var scores = einsum("bqd,bkd->bqk", h, h) * 0.3;
    h = h + matmul(softmax(where(sees, scores, -1e4)), tril(h, 2));
    h = dropout_along(h, 0.25, {1});
    const TopK strongest = top_k(h, 2);
    h = h + sum(strongest.values, {-1}, true) * one_hot(select(strongest.indices, -1, 1), kWidth);
    h = where(h > 0.0, pow(abs(h) + 0.1, 1.5), 0.2 * h) + flip(cumsum(h, 1), 1) * 0.1;
    return head(masked_fill(h, !unsqueeze(is_word, -1), 0.0));
  }

  nn::Parameter table{this, "table", {kClasses, kWidth}, Initializer::Normal(0.5)};
  nn::Parameter position{this, "position", {kTime, kWidth}, Initializer::Normal(0.5)};
  nn::Linear head{this, "head", kWidth, kClasses};
};

Var LossOf(Var logits, Var targets, Var is_word) {
  ClassLossOptions options;
  options.ignore_index = -1;
  options.label_smoothing = 0.1;
  options.weight = to(arange(kClasses, 1), DType::kF32) * 0.5;
  const Var of_words = where(is_word, targets, -1.0);
  const Var wrong = not_equal(argmax(logits, -1), targets) & is_word;
  const Var penalty = mean(square(logsumexp(logits, {-1}))) * 0.01;
  return cross_entropy(logits, of_words, options) + penalty +
         sum(to(wrong, DType::kF32)) * max(logits) * 0.001;
}

struct Result {
  std::vector<float> losses;
  std::string parameters;
  std::vector<float> is_likely;
};

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
};

struct Batch {
  std::vector<int64_t> ids, targets;
  std::vector<uint8_t> is_word;
};

Batch MakeBatch(int64_t seed) {
  Batch batch;
  for (int64_t i = 0; i < kBatch * kTime; ++i) {
    batch.ids.push_back((seed * 7 + i * 3) % kClasses);
    batch.targets.push_back((seed * 5 + i * 2) % kClasses);
    batch.is_word.push_back((seed + i) % 4 == 3 ? 0 : 1);
  }
  return batch;
}

Status TrainOnRank(const Config& config, Communicator& communicator, Result* result) {
  Model model;
  Graph graph("selection");
  graph.train(optim::AdamW{.lr = 0.02}, [&](Inputs& in) {
    const Var is_word = in.boolean("is_word", {kBatch, kTime});
    const Var logits = model.forward(in.i64("ids", {kBatch, kTime}), is_word);
    return LossOf(logits, in.i64("targets", {kBatch, kTime}), is_word);
  });
  graph.eval("predict", [&](Inputs& in) {
    const Var is_word = in.boolean("is_word", {kBatch, kTime});
    return softmax(model.forward(in.i64("ids", {kBatch, kTime}), is_word)) > 0.2;
  });
  graph.config().zero.stage = config.stage;
  graph.config().zero.bucket_bytes = 128;
  graph.config().micro_batches = kMicroBatches;
  graph.config().dtype = config.dtype;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
  Batch batch;
  while (trainer->steps_done() < 3) {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      batch = MakeBatch(trainer->steps_done() * kMicroBatches + micro_batch);
      return trainer->feed(
          {{"ids", batch.ids}, {"targets", batch.targets}, {"is_word", batch.is_word}});
    }));
    result->losses.push_back(loss);
  }
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
  result->parameters = parameters.sha256;
  batch = MakeBatch(communicator.rank());
  ZG_RETURN_IF_ERROR(trainer->eval("predict", {{"ids", batch.ids}, {"is_word", batch.is_word}}));
  ZG_ASSIGN_OR_RETURN(result->is_likely, trainer->result("predict"));
  return Status::Ok();
}

Result Train(const Config& config) {
  return testing::ResultsOnRanks<Result>(config.ranks,
                                         [&](Communicator& communicator, Result* result) {
                                           return TrainOnRank(config, communicator, result);
                                         })[0];
}

TEST(SelectionLanguage, HasTheSameBitsAtEveryStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result expected = Train({1, 0, dtype});
    ASSERT_EQ(expected.losses.size(), 3u);
    for (int ranks = 1; ranks <= 3; ++ranks) {
      for (int stage = 0; stage <= 3; ++stage) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        const Result result = Train({ranks, stage, dtype});
        EXPECT_EQ(result.losses, expected.losses);
        EXPECT_EQ(result.parameters, expected.parameters);
      }
    }
  }
}

TEST(SelectionLanguage, ConditionsAreHandedOutAsZeroAndOne) {
  const Result one = Train({1, 0});
  const Result three = Train({3, 2});
  ASSERT_EQ(one.is_likely.size(), static_cast<size_t>(kBatch * kTime * kClasses));
  ASSERT_EQ(three.is_likely.size(), 3 * one.is_likely.size());
  int num_true = 0;
  for (const float value : three.is_likely) {
    EXPECT_TRUE(value == 0.0f || value == 1.0f) << value;
    num_true += value == 1.0f;
  }
  EXPECT_GT(num_true, 0);
  EXPECT_EQ(
      std::vector<float>(three.is_likely.begin(), three.is_likely.begin() + one.is_likely.size()),
      one.is_likely);
}

}  // namespace
}  // namespace zg
