// Models that mix the samples of a micro-batch, or do not keep them along dim 0: each micro-batch is
// computed on its own, with the same bits at every stage and on any number of ranks, also where it has
// one sample.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {
namespace {

constexpr int64_t kTime = 3;
constexpr int64_t kChannels = 4;
constexpr int64_t kVocabulary = 9;
constexpr int64_t kMicroBatches = 6;

struct Layers : nn::Module {
  nn::Linear linear{this, "linear", kChannels, 6};
  nn::Linear output{this, "output", 6, kChannels};
  nn::BatchNorm1d norm{this, "norm", 6};
  nn::Embedding embedding{this, "embedding", kVocabulary, kChannels};
  nn::LSTM lstm{this, "lstm", 6, 6, {.bidirectional = true}};
};

Var MeanSquare(Var x) { return mean(square(x)); }

Var Recurrence(Layers& layers, Var x) {
  Var h = zeros({x.dim(1), 6});
  Var loss = zeros({});
  for (int64_t t = 0; t < kTime; ++t) {
    h = tanh(layers.linear(select(x, 0, t)) + h);
    loss = loss + MeanSquare(layers.output(h));
  }
  return loss;
}

// The states of a text of its own length for each sample, and the last ones.
Var Lengths(Layers& layers, Var x, Var ids) {
  nn::RecurrentState state;
  const Var lengths = remainder(select(ids, 1, 0), kTime) + 1.0;
  const Var states = layers.lstm(layers.linear(transpose(x, 0, 1)), &state, lengths);
  return MeanSquare(states) + MeanSquare(state.h[0] * state.c[1]);
}

// Each sample's first element is that which fits its second one.
Var Contrast(Layers& layers, Var x) {
  const Var first = normalize(layers.linear(select(x, 0, 0)));
  const Var second = normalize(layers.linear(select(x, 0, 1)));
  return cross_entropy(5.0 * matmul(first, transpose(second, 0, 1)), arange(x.dim(1)));
}

Var Deviations(Layers& layers, Var x) {
  const Var h = layers.linear(flatten(x, 0, 1));
  return MeanSquare(h - mean(h, {0}, /*keep_dims=*/true)) + mean(stddev(h, {0}));
}

// x (T, B, C), ids (B, T).
using Loss = std::function<Var(Layers& layers, Var x, Var ids)>;

const std::map<std::string, Loss>& Losses() {
  static const auto& losses = *new std::map<std::string, Loss>{
      {"flatten", [](Layers& m, Var x,
                     Var) { return MeanSquare(m.output(relu(m.linear(flatten(x, 0, 1))))); }},
      {"recurrence", [](Layers& m, Var x, Var) { return Recurrence(m, x); }},
      {"lengths", [](Layers& m, Var x, Var ids) { return Lengths(m, x, ids); }},
      {"cells_alone",
       [](Layers& m, Var x, Var) {
         nn::RecurrentState state;
         m.lstm(m.linear(transpose(x, 0, 1)), &state);
         return MeanSquare(state.c[0]);
       }},
      {"contrast", [](Layers& m, Var x, Var) { return Contrast(m, x); }},
      {"deviations", [](Layers& m, Var x, Var) { return Deviations(m, x); }},
      {"batch_norm", [](Layers& m, Var x,
                        Var) { return MeanSquare(m.output(m.norm(m.linear(flatten(x, 0, 1))))); }},
      {"other_order",
       [](Layers& m, Var x, Var ids) {
         return MeanSquare(m.linear(m.embedding(ids) + transpose(x, 0, 1)));
       }},
      {"cumsum", [](Layers& m, Var x, Var) { return MeanSquare(m.linear(cumsum(x, 1))); }},
      {"largest", [](Layers& m, Var x, Var) { return MeanSquare(m.linear(max(x, {1}))); }},
      {"roll_and_flip",
       [](Layers& m, Var x, Var) {
         return MeanSquare(m.linear(roll(x, 1, 1)) * m.linear(flip(x, 1)));
       }},
      {"rows_of_all",
       [](Layers& m, Var x, Var ids) {
         return MeanSquare(m.linear(index_select(flatten(x, 0, 1), 0, remainder(flatten(ids), 3))));
       }},
      {"sums_by_id",
       [](Layers& m, Var x, Var ids) {
         const Var rows = flatten(transpose(x, 0, 1), 0, 1);
         return MeanSquare(
             m.linear(index_add(zeros({kVocabulary, kChannels}), 0, flatten(ids), rows)));
       }},
      {"pairs",
       [](Layers& m, Var x, Var) {
         const Var h = m.linear(select(x, 0, 0));
         return MeanSquare(0.5 * (unsqueeze(h, 0) - unsqueeze(h, 1))) + MeanSquare(h);
       }},
      {"repeat",
       [](Layers& m, Var x, Var) {
         return MeanSquare(m.linear(repeat(x, {1, 2, 1})));
       }},
      {"noise",
       [](Layers& m, Var x, Var) {
         const Var rows = flatten(x, 0, 1);
         return MeanSquare(m.linear(rows * uniform(rows)));
       }},
      {"dropout",
       [](Layers& m, Var x, Var) { return MeanSquare(dropout(m.linear(flatten(x, 0, 1)), 0.3)); }},
      {"by_position",
       [](Layers& m, Var x, Var) {
         const Var h = m.linear(select(x, 0, 0));
         return mean(where(unsqueeze(arange(x.dim(1)), 1) > 0.0, h * h, h));
       }},
      {"attention",
       [](Layers& m, Var x, Var) {
         const Var h = m.linear(x);
         return MeanSquare(attention(h, h, h, {.heads = 2}));
       }},
  };
  return losses;
}

struct Setting {
  int64_t samples = 1;  // of a micro-batch
  DType dtype = DType::kF32;
  int ranks = 1;  // that compute different micro-batches
  int stage = 0;
  int tensor = 1;  // ranks that share a micro-batch, with the rows of a weight split among them
};

struct Trained {
  std::vector<float> losses;
  std::string parameters;  // their SHA-256
};

Status TrainOnRank(const std::string& loss, const Setting& setting, Communicator& communicator,
                   Trained* trained) {
  Layers layers;
  Graph graph("across");
  graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
    const Var x = in.f32("x", {kTime, setting.samples, kChannels}, Sbp::S(1));
    const Var ids = in.i64("ids", {setting.samples, kTime});
    return Losses().at(loss)(layers, x, ids) + 0.01 * MeanSquare(layers.embedding(ids));
  });
  graph.config().zero.stage = setting.stage;
  graph.config().zero.shard_min_elements = 0;
  graph.config().micro_batches = kMicroBatches;
  graph.config().dtype = setting.dtype;
  if (setting.tensor > 1) {
    graph.config().mesh = {{"data", setting.ranks}, {"tensor", setting.tensor}};
    graph.config().place("linear", "tensor", Sbp::S(0));
    // Its backward could lie in two ways, which the compiler asks about.
    if (loss == "contrast") graph.config().place_results("linear", "tensor", Sbp::B());
  }
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
  std::vector<float> x(kTime * setting.samples * kChannels);
  std::vector<int64_t> ids(kTime * setting.samples);
  for (int step = 0; step < 3; ++step) {
    ZG_ASSIGN_OR_RETURN(const float value, trainer->step([&](int64_t micro_batch) {
      const auto first = static_cast<size_t>(3 * micro_batch + step);
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7f * static_cast<float>(i + first));
      for (size_t i = 0; i < ids.size(); ++i) {
        ids[i] = static_cast<int64_t>(i * 5 + first) % kVocabulary;
      }
      return trainer->feed({{"x", x}, {"ids", ids}});
    }));
    trained->losses.push_back(value);
  }
  ZG_ASSIGN_OR_RETURN(const TensorDigest digest, trainer->digest_parameters());
  trained->parameters = digest.sha256;
  return Status::Ok();
}

Trained Train(const std::string& loss, const Setting& setting) {
  return ResultsOnRanks<Trained>(setting.ranks * setting.tensor,
                                 [&](Communicator& communicator, Trained* trained) {
                                   return TrainOnRank(loss, setting, communicator, trained);
                                 })[0];
}

class AcrossSamples : public ::testing::TestWithParam<std::string> {};

TEST_P(AcrossSamples, BitsAreTheSameAtAnyStageOnAnyNumberOfRanks) {
  for (Setting one : {Setting{1}, Setting{2}, Setting{1, DType::kBF16}, Setting{2, DType::kBF16},
                      Setting{1, DType::kF32, 1, 0, 2}, Setting{2, DType::kF32, 1, 0, 2}}) {
    const Trained expected = Train(GetParam(), one);
    ASSERT_EQ(expected.losses.size(), 3u);
    for (const int ranks : {2, 3}) {
      for (const int stage : {0, 3}) {
        SCOPED_TRACE(fmt::format("{}, {} samples, {} x {} ranks, stage {}", DTypeName(one.dtype),
                                 one.samples, ranks, one.tensor, stage));
        one.ranks = ranks;
        one.stage = stage;
        const Trained got = Train(GetParam(), one);
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.parameters, expected.parameters);
      }
    }
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, loss] : Losses()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, AcrossSamples, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zg::testing
