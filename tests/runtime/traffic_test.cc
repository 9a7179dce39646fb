// Measured traffic is what was moved, not what was predicted: an extra copy from a peer is visible.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "framework/comm/in_process.h"
#include "framework/ir/parser.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/insert_collectives.h"
#include "framework/passes/predict_traffic.h"
#include "framework/runtime/executor.h"

namespace zg {
namespace {

constexpr char kProgram[] =
    "graph \"traffic\" mesh(data=3) micro_batches=3\n"
    "variables:\n"
    "  %x: f32[12,24] {P} = variable (dtype=\"f32\", shape=[12,24])\n"
    "  %y: f32[12,24] {B} = variable (dtype=\"f32\", shape=[12,24])\n"
    "update:\n"
    "  %s: f32[12,24] {S(0)} = place %x (sbp=\"{S(0)}\")\n"
    "  %b: f32[12,24] {B} = place %s (sbp=\"{B}\")\n"
    "  assign %y, %b\n";

struct Counted {
  std::map<std::string, PredictedTraffic> predicted;
  TrafficCounters measured = {};

  int64_t Predicted(CollectiveKind kind) {
    return predicted[std::string(CollectiveName(kind))].bytes;
  }
  int64_t Measured(CollectiveKind kind) const { return measured[static_cast<int>(kind)].bytes; }
};

// Rank 0's counts of one step, in which every rank also runs `extra`.
Counted CountStep(const std::function<Status(Communicator&)>& extra) {
  RegisterAllOps();
  Counted counted;
  const Status status = RunRanks(3, 60, [&](Communicator& communicator) -> Status {
    ZG_ASSIGN_OR_RETURN(ir::Graph graph, ir::Parse(kProgram));
    ZG_RETURN_IF_ERROR(InsertCollectives().Run(graph).status());
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                        Executor::Create(&graph, CpuKernels(), &communicator, {}));
    ZG_RETURN_IF_ERROR(executor->RunStep(1, 1.0, [&](int64_t) { return extra(communicator); }));
    if (communicator.rank() > 0) return Status::Ok();
    counted.predicted = PredictTraffic(graph);
    counted.measured = communicator.traffic();
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return counted;
}

TEST(TrafficTest, MeasuredIsPredicted) {
  Counted counted = CountStep([](Communicator&) { return Status::Ok(); });
  for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    EXPECT_EQ(counted.Measured(kind), 12 * 24 * 4 * 2 / 3);
    EXPECT_EQ(counted.Predicted(kind), counted.Measured(kind));
  }
}

TEST(TrafficTest, AnExtraCopyShows) {
  Counted counted = CountStep([](Communicator& communicator) {
    return communicator.world().AllGather("extra", {0, 64}, {0, 0}, 64);
  });
  using Kind = CollectiveKind;
  EXPECT_EQ(counted.Predicted(Kind::kReduceScatter), counted.Measured(Kind::kReduceScatter));
  EXPECT_EQ(counted.Predicted(Kind::kAllGather) + 2 * 64, counted.Measured(Kind::kAllGather));
}

}  // namespace
}  // namespace zg
