// What checkpoints record of the order of a program's sums.

#include "framework/train/order_of_sums.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/runtime/plan_program.h"
#include "zero/compile.h"

namespace zg {
namespace {

std::string OrderOn(const std::vector<MeshAxis>& mesh, ReduceEvery reduce_every,
                    Sbp split = Sbp::S(0)) {
  RegisterAllOps();
  nn::Linear layer{nullptr, "layer", 4, 8};
  Graph graph("order");
  graph.train(optim::Sgd{0.1}, [&](Inputs& in) {
    return mean(place(layer(in.f32("x", {2, 4})), "tensor", Sbp::B()));
  });
  CompileOptions options = graph.config();
  options.reduce_every = reduce_every;
  options.micro_batches = 4;
  if (Mesh(mesh).FindAxis("tensor") >= 0) options.place("layer.weight", "tensor", split);
  const StatusOr<Program> program =
      zero::Compile(graph, Mesh(mesh), options, TargetOf(CpuKernels()));
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? OrderOfSums(*program) : "";
}

TEST(OrderOfSums, IsThatOfMicroBatchesOnDataAxes) {
  EXPECT_EQ(OrderOn({{"data", 1}}, ReduceEvery::kMicroBatch), "");
  EXPECT_EQ(OrderOn({{"replica", 2}, {"shard", 2}}, ReduceEvery::kMicroBatch), "");
  EXPECT_EQ(OrderOn({{"data", 1}}, ReduceEvery::kStep), "");
  EXPECT_EQ(OrderOn({{"data", 4}}, ReduceEvery::kStep), ", gradients of 4 ranks");
}

TEST(OrderOfSums, KnowsPartsAndRules) {
  const std::string two = OrderOn({{"data", 1}, {"tensor", 2}}, ReduceEvery::kMicroBatch);
  EXPECT_EQ(two.rfind(", tensor in 2 parts by the rules ", 0), 0u) << two;
  EXPECT_EQ(OrderOn({{"data", 2}, {"tensor", 2}}, ReduceEvery::kMicroBatch), two);
  EXPECT_EQ(OrderOn({{"data", 1}, {"tensor", 1, 2}}, ReduceEvery::kMicroBatch), two);
  EXPECT_NE(OrderOn({{"data", 1}, {"tensor", 4}}, ReduceEvery::kMicroBatch), two);
  EXPECT_NE(OrderOn({{"data", 1}, {"tensor", 2}}, ReduceEvery::kMicroBatch, Sbp::S(1)), two);
}

}  // namespace
}  // namespace zg
