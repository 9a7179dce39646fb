// Attention with dropout, by heads along tensor: every rank drops the same weights of its heads as
// a single rank would, so losses are those of one rank except for the order of sums.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kBatch = 2, kTime = 7, kChannels = 24, kHeads = 6, kKeyHeads = 6;

struct Model : nn::Module {
  Var forward(Var x) override {
    AttentionOptions options;
    options.heads = kHeads;
    options.key_heads = kKeyHeads;
    options.causal = true;
    options.dropout = 0.3;
    options.bias = bias;
    return out(attention(q(x), k(x), v(x), options));
  }
  nn::Linear q{this, "q", kChannels, kChannels};
  nn::Linear k{this, "k", kChannels, kChannels};
  nn::Linear v{this, "v", kChannels, kChannels};
  nn::Linear out{this, "out", kChannels, kChannels};
  nn::Parameter bias{this, "bias", {1, kHeads, kTime, kTime}, Initializer::Normal(0.5)};
};

struct Result {
  std::vector<float> losses;
  bool drops_in_parts = false;
};

Result Train(const std::vector<MeshAxis>& mesh, int stage) {
  RegisterAllOps();
  Result result;
  const Status status = RunRanks(Mesh(mesh).num_ranks(), [&](Communicator& communicator) -> Status {
    Model model;
    Graph graph("dropped");
    graph.train(optim::AdamW{.lr = 0.01}, [&](Inputs& in) {
      const Shape shape = {kBatch, kTime, kChannels};
      return mse_loss(model(in.f32("x", shape)), in.f32("y", shape));
    });
    CompileOptions& config = graph.config();
    config.mesh = mesh;
    config.zero.stage = stage;
    config.micro_batches = 2;
    if (Mesh(mesh).FindAxis("tensor") >= 0) {
      for (const char* name : {"q", "k", "v"}) config.place(name, "tensor", Sbp::S(0));
      config.place("out.weight", "tensor", Sbp::S(1));
    }
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
    for (int step = 1; step <= 5; ++step) {
      std::vector<float> x(kBatch * kTime * kChannels), y(x.size());
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = 0.1f * static_cast<float>((step * 5 + micro_batch * 3 + i * i) % 23) - 1.0f;
        }
        for (size_t i = 0; i < x.size(); ++i) y[i] = x[x.size() - 1 - i];
        return trainer->feed({{"x", x}, {"y", y}});
      }));
      if (communicator.rank() == 0) result.losses.push_back(loss);
    }
    for (const ir::Node* node : trainer->executor().graph().AllNodes()) {
      if (node->op->name != "dropout_attention") continue;
      if (communicator.rank() == 0) result.drops_in_parts = node->attributes.Int("parts") > 1;
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

TEST(DroppedAttention, DropsTheSameByHeads) {
  const Result one = Train({{"data", 1}}, 0);
  ASSERT_EQ(one.losses.size(), 5u);
  for (const int tensor : {2, 3}) {
    const Result parts = Train({{"tensor", tensor}}, 0);
    EXPECT_TRUE(parts.drops_in_parts);
    ASSERT_EQ(parts.losses.size(), one.losses.size());
    for (size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(parts.losses[i] / one.losses[i], 1, 1e-5) << tensor << " ranks, step " << i + 1;
    }
    for (const int stage : {0, 3}) {
      EXPECT_EQ(Train({{"data", 2}, {"tensor", tensor}}, stage).losses, parts.losses);
    }
  }
}

}  // namespace
}  // namespace zg
