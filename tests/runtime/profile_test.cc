// The measured times, with a clock that only the test advances.

#include "framework/runtime/profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/ir/parser.h"
#include "framework/ops/register_all_ops.h"
#include "framework/runtime/executor.h"

namespace zg {
namespace {

constexpr int64_t kMs = 1'000'000;

thread_local int64_t now_ns = 0;  // of a rank
int64_t FakeNow() { return now_ns; }

// Takes time and computes nothing.
class FakeKernel : public Kernel {
 public:
  explicit FakeKernel(std::string op) : op_(std::move(op)) {}
  Status Run(const KernelArguments& arguments) override {
    const int64_t step = arguments.step->step;
    if (op_ == "linear") now_ns += step == 1 ? 900 * kMs : 2 * step * kMs;
    if (op_ == "linear_grad_weight") now_ns += 3 * kMs;
    if (op_ == "relu") now_ns += kMs;
    return Status::Ok();
  }

 private:
  std::string op_;
};

KernelRegistry FakeKernels() {
  KernelRegistry registry;
  for (const char* op : {"linear", "linear_grad_weight", "relu"}) {
    registry.Register(op, [](const KernelSpec& spec) -> StatusOr<std::unique_ptr<Kernel>> {
      return std::unique_ptr<Kernel>(new FakeKernel(spec.call.op->name));
    });
  }
  return registry;
}

// On two ranks, which compute two micro-batches each.
constexpr char kProgram[] = R"(graph "g" mesh(data=2) micro_batches=4
variables:
  %w: f32[8,8] {B} = variable (dtype="f32", shape=[8,8])
    tensor "w" f32[8,8] at 0 init zeros
forward:
  %x: f32[4,8] {S(0)} = input (dtype="f32", name="x", shape=[4,8])
  %h: f32[4,8] {S(0)} = linear %x, %w  // blocks.0.mlp.expand
  %r: f32[4,8] {S(0)} = relu %h
  %y: f32[4,8] {S(0)} = linear %r, %w  // head
backward:
  %w.grad: f32[8,8] {P} = linear_grad_weight %y, %x  // blocks.0.mlp.expand
  %w.grad.sum: f32[8,8] {B} = all_reduce %w.grad
update:
  %w.next: f32[8,8] {B} = relu %w
eval "predict":
  %e: f32[8,8] {B} = linear %w, %w
)";

// Rank 0's profile after so many steps, with an eval after each. `timeline`: of two steps.
StatusOr<Profile> ProfileOf(int steps, Timeline* timeline = nullptr) {
  RegisterAllOps();
  Profile profile;
  const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
    ZG_ASSIGN_OR_RETURN(const ir::Graph graph, ir::Parse(kProgram));
    ExecutorOptions options;
    options.profile_clock = FakeNow;
    if (timeline != nullptr) options.timeline_steps = 2;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                        Executor::Create(&graph, FakeKernels(), &communicator, options));
    EXPECT_FALSE(executor->profile().has_value());
    const std::vector<float> x(2 * 8);
    for (int step = 1; step <= steps; ++step) {
      ZG_RETURN_IF_ERROR(executor->RunStep(step, 1.0, [&](int64_t) {
        now_ns += kMs / 2;
        return executor->SetInput("", "x", DType::kF32, x.data(), x.size() * sizeof(float));
      }));
      ZG_RETURN_IF_ERROR(executor->RunEval("predict"));
    }
    if (communicator.rank() != 0) return Status::Ok();
    profile = executor->profile().value();
    if (timeline == nullptr) return Status::Ok();
    *timeline = *executor->timeline();
    for (TimelineSlice& slice : timeline->slices) slice.node = nullptr;  // the graph is destroyed
    return Status::Ok();
  });
  ZG_RETURN_IF_ERROR(status);
  return profile;
}

TEST(ExecutorProfile, TimeGoesToTheOpAndSectionThatTookIt) {
  const StatusOr<Profile> profile = ProfileOf(3);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile->steps, 2);
  EXPECT_TRUE(profile->is_warm);
  EXPECT_EQ(profile->feed_ms, 1);
  EXPECT_EQ(profile->step_ms, 30);
  EXPECT_EQ(profile->between_nodes_ms(), 0);

  ASSERT_EQ(profile->rows.size(), 6u);
  const ProfileRow& linear = profile->rows[0];
  EXPECT_EQ(linear.op, "linear");
  EXPECT_EQ(linear.section, "forward");
  EXPECT_EQ(linear.calls, 4);
  EXPECT_EQ(linear.ms, 20);                         // steps 2 and 3 take 4 and 6 ms a call
  EXPECT_EQ(linear.flops, 4 * 2 * 2 * 8 * 8);       // of this rank's 2 rows
  EXPECT_EQ(linear.bytes, 4 * 4 * (16 + 64 + 16));  // x or r, w, h or y
  const ProfileRow& gradient = profile->rows[1];
  EXPECT_EQ(gradient.op, "linear_grad_weight");
  EXPECT_EQ(gradient.section, "backward");
  EXPECT_EQ(gradient.calls, 2);
  EXPECT_EQ(gradient.ms, 6);
  const ProfileRow& forward_relu = profile->rows[2];
  EXPECT_EQ(forward_relu.op, "relu");
  EXPECT_EQ(forward_relu.section, "forward");
  EXPECT_EQ(forward_relu.ms, 2);
  const ProfileRow& update_relu = profile->rows[3];
  EXPECT_EQ(update_relu.op, "relu");
  EXPECT_EQ(update_relu.section, "update");
  EXPECT_EQ(update_relu.calls, 1);
  EXPECT_EQ(update_relu.ms, 1);
  EXPECT_EQ(profile->rows[4].op, "input");
  EXPECT_EQ(profile->rows[5].op, "all_reduce");
  EXPECT_EQ(profile->rows[5].calls, 2);
  EXPECT_EQ(profile->rows[5].flops, 0);
}

TEST(ExecutorProfile, CallsOfAnOpDifferByTheirLocalTypes) {
  const StatusOr<Profile> profile = ProfileOf(3);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  std::vector<std::string> lines;
  for (const ProfileCalls& calls : profile->calls) {
    lines.push_back(fmt::format("{} {}: {}: {} calls, {} ms, {} FLOP, {} B", calls.section,
                                calls.op, calls.types, calls.calls, calls.ms, calls.flops,
                                calls.bytes));
  }
  EXPECT_THAT(
      lines,
      testing::ElementsAre(
          "forward input:  -> f32[2,8]: 2 calls, 0 ms, 0 FLOP, 128 B",
          "forward linear: f32[2,8], f32[8,8] -> f32[2,8]: 4 calls, 20 ms, 1024 FLOP, 1536 B",
          "forward relu: f32[2,8] -> f32[2,8]: 2 calls, 2 ms, 32 FLOP, 256 B",
          "backward all_reduce: f32[8,8] -> f32[8,8]: 2 calls, 0 ms, 0 FLOP, 1024 B",
          "backward linear_grad_weight: f32[2,8], f32[2,8] -> f32[8,8]: 2 calls, 6 ms, "
          "512 FLOP, 768 B",
          "update relu: f32[8,8] -> f32[8,8]: 1 calls, 1 ms, 64 FLOP, 512 B"));
}

// The clock of the test stands still while ranks talk, the processor's does not.
TEST(ExecutorProfile, TransfersHaveTheirBytesAndTheProcessorsTime) {
  for (const int steps : {1, 3}) {
    const StatusOr<Profile> profile = ProfileOf(steps);
    ASSERT_TRUE(profile.ok()) << profile.status().message();
    ASSERT_EQ(profile->transfers.size(), 1u);
    const ProfileTransfers& sum = profile->transfers[0];
    EXPECT_EQ(sum.section + " " + sum.op, "backward all_reduce");
    EXPECT_EQ(sum.types, "f32[8,8] -> f32[8,8]");
    EXPECT_EQ(sum.calls, 2);
    EXPECT_EQ(sum.bytes, 2 * 4 * 64);  // half of it is received to be summed, half as a sum
    EXPECT_EQ(sum.ms, 0);
    EXPECT_GT(sum.processor_ms, 0);
    EXPECT_LT(sum.processor_ms, 1000);
  }
}

TEST(ExecutorProfile, TheFirstStepCountsOnlyAlone) {
  const StatusOr<Profile> profile = ProfileOf(1);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile->steps, 1);
  EXPECT_FALSE(profile->is_warm);
  EXPECT_EQ(profile->rows[0].ms, 4 * 900);
  EXPECT_EQ(profile->step_ms, 4 * 900 + 10);
}

TEST(ExecutorProfile, TimeGoesToTheModuleThatTookIt) {
  const StatusOr<Profile> profile = ProfileOf(3);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  ASSERT_EQ(profile->modules.size(), 3u);
  const ProfileModule& deep = profile->modules[0];
  EXPECT_EQ(deep.module, "blocks.0.mlp");  // including its submodules
  EXPECT_EQ(deep.forward_ms, 10);
  EXPECT_EQ(deep.backward_ms, 6);
  EXPECT_EQ(deep.update_ms, 0);
  EXPECT_EQ(profile->modules[1].module, "head");
  EXPECT_EQ(profile->modules[1].ms(), 10);
  EXPECT_EQ(profile->modules[2].module, "");
  EXPECT_EQ(profile->modules[2].forward_ms, 2);
  EXPECT_EQ(profile->modules[2].update_ms, 1);
  double ms = profile->feed_ms + profile->between_nodes_ms();
  for (const ProfileModule& module : profile->modules) ms += module.ms();
  EXPECT_EQ(ms, profile->step_ms);
}

TEST(ExecutorTimeline, IsOfTheFirstSteps) {
  Timeline timeline;
  now_ns = 5 * kMs;
  const StatusOr<Profile> profile = ProfileOf(3, &timeline);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  ASSERT_EQ(timeline.steps.size(), 2u);
  EXPECT_EQ(timeline.steps[0].step, 1);
  EXPECT_EQ(timeline.steps[1].step, 2);
  // A micro-batch: setting inputs, the input, three nodes of forward, two of backward.
  ASSERT_EQ(timeline.slices.size(), 2u * (2 * 7 + 1));
  for (int i = 0; i < 2; ++i) {
    const TimelineStep& step = timeline.steps[i];
    int64_t end_ns = step.begin_ns;
    for (int j = 0; j < 15; ++j) {
      const TimelineSlice& slice = timeline.slices[15 * i + j];
      EXPECT_EQ(slice.begin_ns, end_ns) << i << " " << j;  // this clock stands still between nodes
      end_ns = slice.end_ns;
    }
    EXPECT_EQ(step.end_ns, end_ns);
  }
  const TimelineSlice& linear = timeline.slices[15 + 2];
  EXPECT_EQ(linear.end_ns - linear.begin_ns, 4 * kMs);
}

TEST(Profiler, WhatNoNodeTookIsBetweenThem) {
  Profiler profiler(FakeNow);
  profiler.BeginStep(1);
  now_ns += 3 * kMs;
  const int64_t begin = profiler.Now();
  now_ns += 2 * kMs;
  profiler.EndFeed(begin);
  now_ns += 4 * kMs;
  profiler.EndStep();
  const std::optional<Profile> profile = profiler.Result();
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->step_ms, 9);
  EXPECT_EQ(profile->feed_ms, 2);
  EXPECT_EQ(profile->between_nodes_ms(), 7);
}

// As when a queue ends them while a later step runs.
TEST(Profiler, TransfersBelongToTheirStep) {
  RegisterAllOps();
  const StatusOr<ir::Graph> graph = ir::Parse(kProgram);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const ir::Node& sum = *graph->FindValue("w.grad.sum")->producer;
  Profiler profiler(FakeNow);
  profiler.AddNode(0, *graph, sum);
  const auto transfer = [&](int64_t step, int64_t ms) {
    const Profiler::TransferBegin begin = profiler.BeginTransfer();
    now_ns += ms * kMs;
    profiler.EndTransfer(sum, step, begin);
  };
  for (int64_t step = 1; step <= 3; ++step) {
    profiler.BeginStep(step);
    if (step > 1) transfer(step - 1, step == 2 ? 500 : 3);  // of the step before
    transfer(step, step == 1 ? 700 : 5);
    profiler.EndStep();
  }
  transfer(3, 3);
  const Profile profile = profiler.Result().value();
  ASSERT_EQ(profile.transfers.size(), 1u);
  EXPECT_EQ(profile.transfers[0].calls, 2);
  EXPECT_EQ(profile.transfers[0].ms, 8);
}

TEST(Profiler, TheSteadyClockMovesOn) {
  const int64_t before = SteadyNanoseconds();
  while (SteadyNanoseconds() == before) {
  }
  EXPECT_GT(SteadyNanoseconds(), before);
}

TEST(ProfileTable, AddsUpToTheStep) {
  Profile profile = {9, true, 20, 0.5, {}};
  profile.rows = {{"linear", "forward", 24, 10, 1.234e9, 5e7},
                  {"all_reduce", "backward", 3, 5, 0, 8e6},
                  {"adamw_update", "update", 2, 3.25, 2e7, 4e7},
                  {"bucket_pack", "backward", 25, 0.24, 1e6, 4e9}};
  EXPECT_EQ(ProfileTable(profile),
            R"(  time per step of rank 0   calls      ms   share  GFLOP/s  GB/s
  forward   linear             24  10.000   50.0%    123.4   5.0
  backward  all_reduce          3   5.000   25.0%        -   1.6
  update    adamw_update        2   3.250   16.2%      6.2  12.3
  backward  bucket_pack        25   0.240    1.2%        -     -
            setting inputs          0.500    2.5%
            between nodes           1.010    5.1%
            whole step             20.000  100.0%
  mean of the 9 steps after the first; collectives include waiting for other ranks
)");
}

TEST(ProfileModuleTable, AddsUpToTheNodes) {
  Profile profile = {9, true, 20, 0.5, {}};
  profile.modules = {{"blocks.0.mlp", 6, 4, 0}, {"", 0, 0.5, 4}};
  EXPECT_EQ(ProfileModuleTable(profile),
            R"(  by module     forward  backward  update      ms  share
  blocks.0.mlp    6.000     4.000   0.000  10.000  50.0%
  (no module)     0.000     0.500   4.000   4.500  22.5%
  all nodes       6.000     4.500   4.000  14.500  72.5%
)");
  profile.modules.assign(30, {"m", 0.25, 0, 0});
  const std::string table = ProfileModuleTable(profile);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 24 + 2);
  EXPECT_NE(table.find("(6 others)    1.500     0.000   0.000  1.500   7.5%\n"
                       "  all nodes     7.500 "),
            std::string::npos)
      << table;
}

TEST(ProfileTable, SaysWhichStepsItIsOf) {
  EXPECT_NE(ProfileTable({1, true, 1, 0, {}}).find("  mean of the 1 step after the first;"),
            std::string::npos);
  EXPECT_NE(ProfileTable({1, false, 1, 0, {}})
                .find("  of the first step, which warms up; there was no other;"),
            std::string::npos);
}

}  // namespace
}  // namespace zg
