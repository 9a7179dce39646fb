// The plan's information about transfers: when they run beside the computation, and why not.

#include "framework/plan/transfer_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/passes/overlap_communication.h"
#include "framework/plan/text_report.h"
#include "framework/plan/two_queues.h"
#include "tests/testing/parse_or_die.h"
#include "tests/tools/planned_jobs.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ParseOrDie;

// Every kernel takes 1 ms, including those of collectives, and the link's speed determines the time
// of a gather of 192 bytes.
Machine MachineOf(double ms_of_192_bytes) {
  Machine machine;
  machine.gflops = 1e30;
  machine.latency_us = 0;
  machine.kernel_us = 1000;
  machine.bandwidth_gb_s = 192 / ms_of_192_bytes / 1e6;
  return machine;
}

// Three kernels run beside the first gather; the second is in its place.
constexpr char kOneStart[] = R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[96] {S(0)} = variable (dtype="f32", shape=[96])
forward:
  %p.whole: f32[96] {B} = all_gather %p (start=true)
  %x: f32[64] {B} = input (dtype="f32", name="x", placement="B", shape=[64])
  %a: f32[64] {B} = relu %x
  %b: f32[64] {B} = relu %a
  %c: f32[64] {B} = relu %b
  %p.done: f32[96] {B} = wait %p.whole
  %d: f32[96] {B} = relu %p.done
  %q: f32[96] {S(0)} = relu %p
  %q.whole: f32[96] {B} = all_gather %q
)";

TEST(LayOnTwoQueues, TransfersThatWereStartedHideBehindKernels) {
  const ir::Graph graph = ParseOrDie(kOneStart);
  const ir::Node* const started = graph.FindValue("p.whole")->producer;
  const ir::Node* const in_place = graph.FindValue("q.whole")->producer;
  auto times = LayOnTwoQueues(graph, MachineOf(2)).transfers;
  EXPECT_NEAR(times.at(started).hidden_ms(), 2, 1e-9);
  EXPECT_EQ(times.at(in_place).hidden_ms(), 0);
  times = LayOnTwoQueues(graph, MachineOf(5)).transfers;
  EXPECT_NEAR(times.at(started).ms, 5, 1e-9);
  EXPECT_NEAR(times.at(started).hidden_ms(), 3, 1e-9);  // 2 ms of it are exposed
  EXPECT_EQ(times.at(in_place).hidden_ms(), 0);
}

// The first is needed late, the second at once: of 4 ms of waiting, 3 belong to the first, which
// occupies the link until then.
TEST(LayOnTwoQueues, WaitsAreForWhatIsOnItsWay) {
  const ir::Graph graph = ParseOrDie(R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[96] {S(0)} = variable (dtype="f32", shape=[96])
  %q: f32[96] {S(0)} = variable (dtype="f32", shape=[96])
forward:
  %p.whole: f32[96] {B} = all_gather %p (start=true)
  %q.whole: f32[96] {B} = all_gather %q (start=true)
  %q.done: f32[96] {B} = wait %q.whole
  %a: f32[96] {B} = relu %q.done
  %p.done: f32[96] {B} = wait %p.whole
  %b: f32[96] {B} = relu %p.done
)");
  const auto times = LayOnTwoQueues(graph, MachineOf(4)).transfers;
  // The first starts at 1 ms, when its kernel has started it, and ends at 5; the second ends at 9.
  // From 2 ms on, when the second has been started, both are waited for.
  EXPECT_NEAR(times.at(graph.FindValue("p.whole")->producer).waited_ms, 3, 1e-9);
  EXPECT_NEAR(times.at(graph.FindValue("q.whole")->producer).waited_ms, 4, 1e-9);
}

// A gather at the end of a step is hidden behind the beginning of the next.
TEST(LayOnTwoQueues, AStepFollowsAnother) {
  const ir::Graph graph = ParseOrDie(R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[96] {B} = variable (dtype="f32", shape=[96])
forward:
  %x: f32[64] {B} = input (dtype="f32", name="x", placement="B", shape=[64])
  %a: f32[64] {B} = relu %x
  %p.done: f32[96] {B} = wait %p
  %b: f32[96] {B} = relu %p.done
update:
  %p.shard: f32[96] {S(0)} = local_slice %p
  %p.whole: f32[96] {B} = all_gather %p.shard (start=true)
  assign %p, %p.whole
)");
  const auto times = LayOnTwoQueues(graph, MachineOf(3)).transfers;
  EXPECT_NEAR(times.at(graph.FindValue("p.whole")->producer).hidden_ms(), 1, 1e-9);
}

// A transfer of 4 ms works for 2: three kernels of 1 ms beside it get 2 ms done until it ends.
TEST(LayOnTwoQueues, ATransfersWorkSlowsTheKernelsBesideIt) {
  const ir::Graph graph = ParseOrDie(kOneStart);
  Profile profile = {3, true, 1, 0, {}};
  profile.calls = {{"relu", "forward", "f32[64] -> f32[64]", 1, 1, 64, 512}};
  profile.transfers = {{"all_gather", "forward", "f32[48] -> f32[96]", 2, 8, 4, 384}};
  Machine machine;
  for (const bool are_free : {false, true}) {
    machine.prices =
        std::make_shared<PriceList>(profile, "p.json", ProfiledRanks{{0, 0}, are_free});
    const StepOnQueues step = LayOnTwoQueues(graph, machine);
    const ir::Node* const started = graph.FindValue("p.whole")->producer;
    EXPECT_NEAR(step.transfers.at(started).ms, 4, 1e-9);
    EXPECT_NEAR(step.slowed_ms, are_free ? 0 : 2, 1e-9);
    EXPECT_NEAR(step.transfers.at(started).hidden_ms(), are_free ? 3 : 4, 1e-9);
    ASSERT_GE(step.computing.size(), 3u);
    EXPECT_NEAR(step.computing[1].end_ms, are_free ? 2 : 4, 1e-9);
    EXPECT_NEAR(step.computing[2].end_ms, are_free ? 3 : 5, 1e-9);
  }
}

std::vector<std::string> Lines(const std::vector<PlannedTransfer>& transfers) {
  std::vector<std::string> lines;
  for (const PlannedTransfer& transfer : transfers) {
    lines.push_back(fmt::format("{} {} {} x{}: {} B, {:.3g} of {:.3g} ms hidden, holds {}; {}",
                                transfer.section, transfer.op, transfer.value, transfer.calls,
                                transfer.bytes, transfer.hidden_ms, transfer.ms,
                                transfer.held_bytes, transfer.reason));
  }
  return lines;
}

TEST(ListTransfers, SaysHowMuchIsHiddenAndWhyTheRestIsNot) {
  const ir::Graph graph = ParseOrDie(kOneStart);
  EXPECT_THAT(
      Lines(ListTransfers(graph, LayOnTwoQueues(graph, MachineOf(5)), 1000)),
      ElementsAre(
          "forward all_gather p.whole x1: 192 B, 3 of 5 ms hidden, holds 384; what is computed "
          "beside it takes less time",
          "forward all_gather q.whole x1: 192 B, 0 of 5 ms hidden, holds 0; nothing is "
          "computed between its input and its reader"));
  EXPECT_THAT(Lines(ListTransfers(graph, LayOnTwoQueues(graph, MachineOf(2)), 1000))[0],
              "forward all_gather p.whole x1: 192 B, 2 of 2 ms hidden, holds 384; ");
}

// What is in variables is alive anyhow.
TEST(ListTransfers, SaysWhatIsHeld) {
  const ir::Graph graph = ParseOrDie(R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[96] {B} = variable (dtype="f32", shape=[96])
backward:
  %x: f32[96] {P} = input (dtype="f32", name="x", placement="P", shape=[96])
  %g: f32[96] {P} = relu %x
  %g.shard: f32[96] {S(0)} = reduce_scatter %g (start=true)
  %a: f32[96] {P} = relu %x
  %g.done: f32[96] {S(0)} = wait %g.shard, %g
update:
  %p.shard: f32[96] {S(0)} = local_slice %p
  %p.whole: f32[96] {B} = all_gather %p.shard (start=true)
  assign %p, %p.whole
)");
  std::vector<int64_t> held;
  for (const PlannedTransfer& transfer :
       ListTransfers(graph, LayOnTwoQueues(graph, MachineOf(1)), 1000)) {
    held.push_back(transfer.held_bytes);
  }
  EXPECT_THAT(held, ElementsAre(384 + 192, 0));
}

TEST(GroupTransfers, AddsUpThoseOfOneSectionOpAndReason) {
  const std::vector<PlannedTransfer> transfers = {
      {"forward", "all_gather", "a", 2, 10, 1, 0.5, 3, "why"},
      {"forward", "all_gather", "b", 2, 20, 2, 2, 5, ""},
      {"forward", "all_gather", "c", 4, 40, 4, 1, 7, "why"},
      {"update", "all_gather", "d", 1, 80, 8, 0, 0, "why"}};
  EXPECT_THAT(Lines(GroupTransfers(transfers)),
              ElementsAre("forward all_gather  x6: 50 B, 1.5 of 5 ms hidden, holds 7; why",
                          "forward all_gather  x2: 20 B, 2 of 2 ms hidden, holds 5; ",
                          "update all_gather  x1: 80 B, 0 of 8 ms hidden, holds 0; why"));
}

// A limit below a bucket, one between one and two, and none.
TEST(JobPlan, ListsItsTransfers) {
  PlanOptions options = OnRanks(TinyGpt(), 2, 3);
  options.batch = 8;
  options.compile.zero.bucket_bytes = 8 << 10;
  const auto plan_with = [&](int64_t overlap_bytes) {
    options.compile.overlap_bytes = overlap_bytes;
    StatusOr<JobPlan> plan = PlanModel(options);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    double hidden_ms = 0;
    int64_t bytes = 0;
    for (const PlannedTransfer& transfer : plan->transfers) {
      hidden_ms += transfer.hidden_ms;
      bytes += transfer.bytes;
      EXPECT_EQ(transfer.reason.empty(), transfer.hidden_ms > transfer.ms * (1 - 1e-9));
    }
    EXPECT_NEAR(hidden_ms, plan->time.hidden_ms, 1e-9);
    EXPECT_EQ(bytes, plan->sent_bytes);
    PlanReport report;
    report.plan = *std::move(plan);
    return TextReport(report);
  };
  EXPECT_THAT(plan_with(0), HasSubstr("  0.0     0.0    0 B  overlap is off\n"));
  EXPECT_THAT(plan_with(1000), HasSubstr("  its buffers are above the limit of 1.0 KB\n"));
  EXPECT_THAT(plan_with(10000), HasSubstr("  others take up the limit of 10.0 KB\n"));
  const std::string unlimited = plan_with(CompileOptions::kUnlimitedBytes);
  EXPECT_THAT(unlimited, HasSubstr("  sending"));
  EXPECT_THAT(unlimited, HasSubstr("of the sending hidden beside computing"));
}

}  // namespace
}  // namespace zg::plan
